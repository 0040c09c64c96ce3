-- wrk's side of ./bench inbox: one kind of request, for users by turns. The requests are made beforehand, so that
-- sending them costs as little as what other generators send.
-- Arguments: publish, told (the same), feed, anew (pages of 15 to 25 messages in turns) or counts; the number of users; the body of a message, in a file.
local requests, at = {}, 0

function init(args)
  local what, users = args[1], tonumber(args[2])
  local file = assert(io.open(args[3]))
  local message = file:read("*a")
  file:close()
  for n = 0, (what == "anew" and 11 or 1) * users - 1 do
    local user = string.format("user-%06d", n % users)
    if what == "publish" or what == "told" then
      local body = '{"to":"' .. user .. '","category":"orders","message":' .. message .. "}"
      requests[n] = wrk.format("POST", "/inbox/shop/bell/messages/post", { ["Content-Type"] = "application/json" }, body)
    else
      local limit = what == "anew" and 15 + math.floor(n / users) or 20
      local path = what == "counts" and "/inbox/shop/bell/counts" or "/inbox/shop/bell/messages?limit=" .. limit
      requests[n] = wrk.format("GET", path, { ["X-Inbox-User"] = user })
    end
  end
end

function request()
  at = (at + 1) % (#requests + 1)
  return requests[at]
end
