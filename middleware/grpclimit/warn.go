package grpclimit

import "github.com/weirhq/weir/internal/front"

// mistakes say what is wrong, in a sentence, and what to do.
var mistakes = [front.Own]front.Mistake{
	front.ProxyNotTrusted: {"G001", "metadata of a proxy received, but no proxy is trusted",
		"If a proxy is in front, add its network to TrustedProxies; otherwise all clients behind the proxy count as one. If there is no proxy, a client forged the metadata, and they were ignored."},
	front.MountedTwice: {"G002", "call limited twice",
		"Add the interceptor to the chain once. The call was charged once."},
	front.HeadersDisagree: {"G003", "x-forwarded-for and forwarded name different clients",
		"Set ProxyHeader to the one that your proxies set, and make them remove the other. The call was counted for the address of the proxy."},
	front.NoAddress: {"G004", "connection without IP address",
		"All such connections are limited as one client, 0.0.0.0. Use a listener whose connections have the address of the client."},
	front.NotChecked: {"G005", "call not checked",
		"The call failed with InvalidArgument. The error has the cause, in the rules or in the functions of Options."},
	front.NotUsed: {"G006", "result of Actual not used",
		"Return units that rules have. The error has the cause. The call was charged as estimated."},
}
