// A schedule of who is on call, as JSON: whatever it is, it is refused, or its shifts are in order and say
// what on_call() says.
#include <cstdint>
#include <cstdlib>

#include "base/time_text.h"
#include "manhunt/rotation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  static JsonDocument document;
  const auto json = document.parse({reinterpret_cast<const char*>(data), size});
  if (!json || !json->is_object()) return 0;
  const auto schedule = manhunt::read_schedule(*json);
  if (!schedule) return 0;
  const auto from = parse_time("2026-03-20T00:00:00Z").value();
  auto last = from;
  const auto shifts = manhunt::shifts(*schedule, from, from + std::chrono::days(20));
  if (!shifts) return 0;
  for (const auto& shift : *shifts) {
    if (shift.from < last || shift.to <= shift.from ||
        manhunt::on_call(*schedule, shift.from) != shift.contact)
      std::abort();
    last = shift.to;
  }
  std::string text;
  {
    JsonObjectWriter object(text);
    manhunt::write_schedule(object, *schedule);
  }
  JsonDocument again;
  const auto parsed = again.parse(text);
  if (!parsed || !manhunt::read_schedule(*parsed)) std::abort();
  return 0;
}
