#include "journal/journal_model.h"

#include <algorithm>

#include <fmt/format.h>

namespace tabella::journal {

std::string ModelEntity::append(const Append& append, TimePoint now) {
  if (const auto batch = batches_.find(append.batch_id); batch != batches_.end()) {
    const auto [first, last] = batch->second;
    if (last - first + 1 != append.events.size()) return fmt::format("batch {}", last - first + 1);
    return fmt::format("{}-{} again", first, last);
  }
  if (append.epoch && *append.epoch < epoch) return fmt::format("epoch {}", epoch);
  if (append.expected.number() && *append.expected.number() != highest())
    return fmt::format("version {}", highest());
  if (append.time_to_live && expiring_to_ != highest() && deleted_to_ != highest()) return "refused";
  const auto first = highest() + 1;
  apply(append, now);
  return fmt::format("{}-{}", first, highest());
}

void ModelEntity::apply(const Append& append, TimePoint now) {
  const auto first = highest() + 1;
  std::optional<TimePoint> expires;
  if (append.time_to_live) {
    expires_ = std::max(expires_, now + *append.time_to_live);
    expires = std::chrono::ceil<std::chrono::seconds>(expires_);
  }
  for (const auto& event : append.events) events_.push_back({.payload = event.payload, .expires = expires});
  if (expires) expiring_to_ = highest();
  if (append.epoch) epoch = std::max(epoch, *append.epoch);
  if (!append.batch_id.empty()) batches_[append.batch_id] = {first, highest()};
}

void ModelEntity::add_foreign(std::string payload, bool is_shown) {
  events_.push_back({.payload = std::move(payload), .is_shown = is_shown});
}

uint64_t ModelEntity::delete_to(uint64_t to) {
  deleted_to_ = std::max(deleted_to_, std::min(to, highest()));
  return deleted_to_;
}

bool ModelEntity::confirm(uint64_t number, const std::vector<std::string>& by, TimePoint now) {
  if (number < lowest(now) || number > highest()) return false;
  events_[number - 1].confirmations.insert(by.begin(), by.end());
  return true;
}

uint64_t ModelEntity::lowest(TimePoint now) const {
  auto number = deleted_to_ + 1;
  while (number <= expiring_to_ && event(number).expires && *event(number).expires <= now) ++number;
  return number;
}

std::vector<std::string> ModelEntity::read(uint64_t from, uint64_t to, TimePoint now) const {
  std::vector<std::string> payloads;
  for (auto number = std::max(from, lowest(now)); number <= std::min(to, highest()); ++number)
    if (event(number).is_shown) payloads.push_back(event(number).payload);
  return payloads;
}

}  // namespace tabella::journal
