package httprequest

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/internal/runspec"
)

func TestAddressPolicy(t *testing.T) {
	for _, address := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1",
		"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
		"255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "fe80::1", "fe80::1%eth0", "fec0::1",
		"fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1", "100::1", "2001::1", "2001:1::1", "2001:db8::1", "3fff::1", "5f00::1",
		"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::", "2002:c0a8:101::1",
		"4000::1",
	} {
		if err := (addressPolicy{}).check(netip.MustParseAddr(address)); !errors.Is(err, ErrAddressRefused) {
			t.Errorf("%s: %v, want refused", address, err)
		}
	}
	for _, address := range []string{
		"1.1.1.1", "93.184.216.34", "172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "169.253.0.1", "198.20.0.0",
		"::ffff:1.1.1.1", "2606:4700::1111", "2a00:1450:4001::1", "64:ff9b::1.1.1.1", "2002:101:101::1", "2001:200::1",
	} {
		if err := (addressPolicy{}).check(netip.MustParseAddr(address)); err != nil {
			t.Errorf("%s: %v, want allowed", address, err)
		}
	}
	if err := (addressPolicy{}).check(netip.Addr{}); !errors.Is(err, ErrAddressRefused) {
		t.Errorf("no address: %v", err)
	}
}

func TestAllowedRanges(t *testing.T) {
	allowed, err := parseCIDRs([]string{"10.1.0.0/16", "::1/128", "192.168.7.9/24"})
	if err != nil {
		t.Fatal(err)
	}
	policy := addressPolicy{allowed: allowed}
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "::1": true, "127.0.0.1": false, "192.168.7.1": true,
		"64:ff9b::10.1.2.3": false,
	} {
		if err := policy.check(netip.MustParseAddr(address)); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", address, err, want)
		}
	}
}

// However an IPv4 address is written as IPv6, it is allowed only if it is allowed itself.
func TestEmbeddedAddressesGainNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v4 := netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "v4")))
		four := v4.As4()
		var mapped, translated, sixToFour [16]byte
		copy(mapped[:], netip.MustParseAddr("::ffff:0:0").AsSlice())
		copy(mapped[12:], four[:])
		copy(translated[:], netip.MustParseAddr("64:ff9b::").AsSlice())
		copy(translated[12:], four[:])
		copy(sixToFour[:], []byte{0x20, 0x02})
		copy(sixToFour[2:], four[:])
		plain := (addressPolicy{}).check(v4) == nil
		for _, wrapped := range [][16]byte{mapped, translated, sixToFour} {
			if got := (addressPolicy{}).check(netip.AddrFrom16(wrapped)) == nil; got != plain {
				t.Fatalf("%s: allowed %v, but as %s %v", v4, plain, netip.AddrFrom16(wrapped), got)
			}
		}
	})
}

func TestCheckDial(t *testing.T) {
	for endpoint, network := range map[string]string{
		"1.1.1.1:53": "udp4", "/run/x.sock": "unix", "nonsense": "tcp4", "127.0.0.1:80": "tcp4", "[::1]:80": "tcp6",
		"[fe80::1%eth0]:80": "tcp6",
	} {
		if err := (addressPolicy{}).checkDial(network, endpoint); !errors.Is(err, ErrAddressRefused) {
			t.Errorf("%s %s: %v", network, endpoint, err)
		}
	}
}

func TestNewClientNamesABadRange(t *testing.T) {
	_, err := NewClient(runspec.HTTPPolicy{AllowedCIDRs: []string{"10.0.0.0/8", "10.0.0.1"}})
	if err == nil || !strings.Contains(err.Error(), `http.allowedCidrs[1]: found "10.0.0.1"`) {
		t.Errorf("%v", err)
	}
}
