package httprequest

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrAddressRefused is wrapped by the error of a dial to an address that the policy does not allow.
var ErrAddressRefused = errors.New("address refused")

// refused are the special-purpose ranges that are not reachable from everywhere, or lead into the own network (IANA
// IPv4 and IPv6 Special-Purpose Address Registries). Of IPv6, everything outside 2000::/3 is refused as well.
var refused = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // shared (carrier-grade NAT)
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, and the clouds' metadata at 169.254.169.254
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // IETF protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays, deprecated
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast
	"2001::/23",       // IETF protocol assignments, Teredo among them
	"2001:db8::/32",   // documentation
	"3fff::/20",       // documentation
)

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour     = netip.MustParsePrefix("2002::/16")
)

// addressPolicy decides which addresses may be dialled: public ones, and those of the allowed ranges.
type addressPolicy struct{ allowed []netip.Prefix }

// check is asked about the address that is being dialled, after resolution: a name that resolves to something else
// the next time (DNS rebinding) gains nothing.
func (p addressPolicy) check(address netip.Addr) error {
	address = address.WithZone("").Unmap()
	if p.allows(address) {
		return nil
	}
	if !address.IsValid() || !public(address) {
		return fmt.Errorf("%w: %s is no public address, and in none of the allowed ranges", ErrAddressRefused, address)
	}
	return nil
}

func (p addressPolicy) allows(address netip.Addr) bool {
	for _, prefix := range p.allowed {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

func public(address netip.Addr) bool {
	if inner, wrapped := embedded(address); wrapped {
		return public(inner)
	}
	if address.Is6() && !globalUnicast.Contains(address) {
		return false
	}
	for _, prefix := range refused {
		if prefix.Contains(address) {
			return false
		}
	}
	return true
}

// embedded is the IPv4 address that a NAT64 (RFC 6052) or 6to4 (RFC 3056) address leads to.
func embedded(address netip.Addr) (netip.Addr, bool) {
	bytes := address.As16()
	switch {
	case nat64.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[12:16])), true
	case sixToFour.Contains(address):
		return netip.AddrFrom4([4]byte(bytes[2:6])), true
	default:
		return netip.Addr{}, false
	}
}

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}
