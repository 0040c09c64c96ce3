-- wrk's side of ./bench journal: appends of so many events to entities by turns. The requests are made beforehand, so
-- that sending them costs as little as what other generators send.
-- Arguments: the journal, the file with an event's payload, the events of an append, the number of entities; with one
-- entity, its id.
local requests, at = {}, 0

function init(args)
  local journal, batch, entities, id = args[1], tonumber(args[3]), tonumber(args[4]), args[5]
  local file = assert(io.open(args[2]))
  local event = '{"data":' .. file:read("*a") .. "}"
  file:close()
  local body = '{"events":[' .. string.rep(event .. ",", batch - 1) .. event .. "]}"
  local headers = { ["Content-Type"] = "application/json" }
  for n = 0, entities - 1 do
    local pid = id or string.format("account-%012d", n)
    requests[n] = wrk.format("POST", "/journal/" .. journal .. "/" .. pid .. "/events", headers, body)
  end
end

function request()
  at = (at + 1) % (#requests + 1)
  return requests[at]
end
