package httprequest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

const (
	dialTimeout            = 5 * time.Second
	tlsHandshakeTimeout    = 5 * time.Second
	idleConnTimeout        = 60 * time.Second
	maxIdleConns           = 64
	maxIdleConnsPerHost    = 16
	maxResponseHeaderBytes = 64 << 10
)

// NewClient makes the client that http-request nodes share. It dials only public addresses and those that the policy
// allows, uses no proxy, follows no redirect and keeps no cookie. Its errors name a range that cannot be read.
func NewClient(policy runspec.HTTPPolicy) (*http.Client, error) {
	return newClient(policy, net.DefaultResolver, nil)
}

// newClient lets tests resolve names and trust certificates of their own.
func newClient(policy runspec.HTTPPolicy, resolver *net.Resolver, trust *tls.Config) (*http.Client, error) {
	allowed, err := parseCIDRs(policy.AllowedCIDRs)
	if err != nil {
		return nil, err
	}
	addresses := addressPolicy{allowed: allowed}
	dialer := &net.Dialer{
		Timeout: dialTimeout, Resolver: resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return addresses.checkDial(network, address)
		},
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSClientConfig: trust,
			TLSHandshakeTimeout: tlsHandshakeTimeout, IdleConnTimeout: idleConnTimeout, MaxIdleConns: maxIdleConns,
			MaxIdleConnsPerHost: maxIdleConnsPerHost, MaxResponseHeaderBytes: maxResponseHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// checkDial is asked by the dialer for each address that a name resolved to, before it connects.
func (p addressPolicy) checkDial(network, address string) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("%w: network %s", ErrAddressRefused, network)
	}
	endpoint, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s cannot be read", ErrAddressRefused, address)
	}
	return p.check(endpoint.Addr())
}

func parseCIDRs(texts []string) ([]netip.Prefix, error) {
	all := make([]netip.Prefix, 0, len(texts))
	for i, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("http.allowedCidrs[%d]: found %q, allowed: a range such as 10.0.0.0/8", i, text)
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}
