// A user's token: whatever it is, nobody comes in by it who was not let in.
#include <cstdint>
#include <cstdlib>

#include "inbox/user_tokens.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tabella;
  static const inbox::Place place{.tenant = "shop", .inbox = "bell"};
  static const TimePoint now{std::chrono::seconds{1'700'000'000}};
  static const auto good = inbox::make_user_token(
      "secret", {.place = place, .user = "ann", .lifetime = std::chrono::hours(1)}, now);
  const std::string token(reinterpret_cast<const char*>(data), size);
  const inbox::TokenKeys keys{.secret = "secret", .public_keys = {}};
  if (const auto read = inbox::read_user_token(token, keys, place, now); read && read->user != "ann")
    std::abort();
  // One that was good, with something changed.
  auto changed = good;
  for (size_t i = 0; i + 1 < size && i < 8; i += 2)
    changed[data[i] % changed.size()] = static_cast<char>(data[i + 1]);
  const auto read = inbox::read_user_token(changed, keys, place, now);
  if (read && read->user != "ann") std::abort();
  return 0;
}
