-- wrk's side of ./bench manhunt: opens so many searches, for contacts by turns, and stops.
-- Arguments: how many; a file with the contacts' ids, one in a line.
local bodies, wanted, sent, answered = {}, 0, 0, 0

function init(args)
  wanted = tonumber(args[1])
  for id in io.lines(args[2]) do
    local body = '{"contact": "' .. id .. '", "metadata": {"summary": "Disk full on db1", "host": "db1"}}'
    bodies[#bodies + 1] = wrk.format("POST", "/manhunt/bench/searches", { ["Content-Type"] = "application/json" }, body)
  end
end

function request()
  sent = sent + 1
  return bodies[sent % #bodies + 1]
end

-- Some more than wanted are opened: those under way when the last is answered.
function response(status)
  if status == 201 then answered = answered + 1 end
  if answered == wanted then
    wrk.thread:stop()
    print("all are open")  -- wrk itself waits for the end of its duration: whoever has started it ends it
    io.stdout:flush()
  end
end
