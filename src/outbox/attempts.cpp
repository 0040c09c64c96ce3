#include "outbox/attempts.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace tabella::outbox {
namespace {

// From best to worst.
constexpr std::array<std::string_view, 4> kOutcomes = {"delivered", "deferred", "failed", "unknown"};

}  // namespace

std::string_view outcome_name(smtp::Outcome::Kind kind) {
  switch (kind) {
    case smtp::Outcome::Kind::delivered: return kOutcomes[0];
    case smtp::Outcome::Kind::deferred: return kOutcomes[1];
    case smtp::Outcome::Kind::refused: return kOutcomes[2];
    case smtp::Outcome::Kind::unknown: return kOutcomes[3];
  }
  return kOutcomes[3];
}

std::string worst_of(const std::vector<AttemptResult>& results) {
  size_t worst = 0;
  for (const auto& result : results) {
    const auto at = static_cast<size_t>(std::ranges::find(kOutcomes, result.outcome) - kOutcomes.begin());
    worst = std::max(worst, std::min(at, kOutcomes.size() - 1));
  }
  return std::string(kOutcomes[worst]);
}

std::string kept_reply(std::string reply, size_t recipients) {
  reply.resize(
      std::min(reply.size(), std::clamp<size_t>(150'000 / std::max<size_t>(recipients, 1), 60, 500)));
  return to_valid_utf8(reply);
}

bool has_reached(const Attempt& attempt) {
  return std::ranges::any_of(attempt.results, [](const AttemptResult& result) {
    return result.outcome != "deferred" || (result.step != "connect" && result.step != "greeting");
  });
}

Attempt lost_attempt(const Message& message, std::string worker, TimePoint began, TimePoint now) {
  Attempt attempt{.number = message.attempts,
                  .outcome = "unknown",
                  .began = began,
                  .ended = now,
                  .worker = std::move(worker)};
  for (const auto& recipient : message.recipients) {
    if (recipient.result != Result::waiting) continue;
    attempt.repeated = attempt.repeated || recipient.may_have_it;
    attempt.results.push_back({.address = recipient.address,
                               .outcome = "unknown",
                               .reply = "the process that was sending it ended before it was written down"});
  }
  return attempt;
}

}  // namespace tabella::outbox
