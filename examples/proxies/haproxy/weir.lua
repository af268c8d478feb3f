-- Asks weir whether a request is allowed:  http-request lua.weir

-- The socket of "listen weir" in haproxy.cfg.
local socket = "unix@/run/haproxy/weir.sock"

-- The token for weir, from the environment; nil if weir has no tokens.
local token = os.getenv("WEIR_TOKEN")

-- If weir is unavailable: true fails open, false fails closed with 503.
local open_without_weir = true

-- Headers for clients of allowed requests, and the variables that keep them until the
-- response.
local told = {
	["x-ratelimit-limit"] = "txn.weir_limit",
	["x-ratelimit-remaining"] = "txn.weir_remaining",
	["x-ratelimit-reset"] = "txn.weir_reset",
	["x-ratelimit-degraded"] = "txn.weir_degraded",
	["ratelimit-policy"] = "txn.weir_policy",
	["ratelimit"] = "txn.weir_ratelimit",
	["ratelimit-warning"] = "txn.weir_warning",
}

-- Headers that are not sent to weir. Some are about the connection or the body. A client
-- could forge the others, so only HAProxy may set them.
local kept = {
	["host"] = true, ["connection"] = true, ["keep-alive"] = true, ["upgrade"] = true,
	["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["expect"] = true,
	["content-length"] = true, ["content-encoding"] = true, ["proxy-connection"] = true,
	["forwarded"] = true, ["weir-token"] = true,
}

-- The HTTP client of HAProxy 2.6 crashes on 98 headers. 64 are enough in practice.
local most = 64

-- question returns the headers to send to weir, or nil if there are too many.
local function question(txn)
	local headers, lines = {}, 0
	for name, values in pairs(txn.http:req_get_headers()) do
		if not kept[name] and not name:find("^x%-original%-") and not name:find("^x%-forwarded%-") then
			headers[name] = values
			for _ in pairs(values) do lines = lines + 1 end
		end
	end
	if lines > most then return nil end
	headers["host"] = { "localhost" }
	headers["x-original-method"] = { txn.f:method() }
	headers["x-original-uri"] = { txn.f:pathq() }
	headers["x-original-host"] = { txn.f:req_hdr("host") or "" }
	headers["x-forwarded-for"] = { txn.f:src() }
	if token then headers["weir-token"] = { token } end
	return headers
end

local function deny(txn, status, headers, body)
	txn:done(txn:reply { status = status, headers = headers, body = body })
end

core.register_action("weir", { "http-req" }, function(txn)
	local asked = question(txn)
	if not asked then return deny(txn, 431, {}, "") end
	local answer = core.httpclient():get {
		url = "http://localhost/v1/authz", dst = socket, headers = asked, timeout = 2000,
	}
	local headers = answer and answer.headers or {}
	if not headers["x-weir-answer"] then
		if not open_without_weir then
			deny(txn, 503, { ["retry-after"] = { "5" }, ["cache-control"] = { "no-store" } }, "")
		end
		return
	end
	if answer.status == 200 then
		for name, variable in pairs(told) do
			if headers[name] then txn:set_var(variable, headers[name][0]) end
		end
		return
	end
	local shown = {}
	for name, values in pairs(headers) do
		if told[name] or name == "retry-after" or name == "content-type" or name == "cache-control" then
			shown[name] = { values[0] }
		end
	end
	deny(txn, answer.status, shown, answer.body)
end, 0)
