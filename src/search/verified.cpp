#include "search/verified.h"

namespace tabella::search {

namespace {

std::string name_of(const std::string& segment, const std::string& texts) { return segment + "|" + texts; }

}  // namespace

Verdict Verified::get(const std::string& segment, const std::string& texts, size_t slots) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(name_of(segment, texts));
  if (found == places_.end()) return Verdict(slots);
  known_.splice(known_.begin(), known_, found->second);
  return found->second->verdict;
}

void Verified::add(const std::string& segment, const std::string& texts, const Verdict& more) {
  auto name = name_of(segment, texts);
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find(name); found != places_.end()) {
    auto& verdict = found->second->verdict;
    verdict.looked_at |= more.looked_at;
    verdict.matching |= more.matching;
    return;
  }
  known_.push_front({.name = name, .verdict = more});
  places_.emplace(std::move(name), known_.begin());
  bytes_ += bytes_of(known_.front());
  while (bytes_ > most_bytes_ && known_.size() > 1) drop_oldest();
}

void Verified::drop_oldest() {
  bytes_ -= bytes_of(known_.back());
  places_.erase(known_.back().name);
  known_.pop_back();
}

size_t Verified::bytes_of(const Known& known) {
  constexpr size_t kOverhead = 200;  // of the nodes
  return kOverhead + 2 * known.name.size() + known.verdict.looked_at.size() / 4;
}

}  // namespace tabella::search
