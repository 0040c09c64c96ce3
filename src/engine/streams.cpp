#include "engine/streams.h"

namespace tabella::engine {

StreamPtr Streams::find(uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

StreamPtr Streams::find(std::string_view arn) const {
  const std::lock_guard lock(mutex_);
  const auto at = by_arn_.find(arn);
  return at == by_arn_.end() ? nullptr : at->second;
}

void Streams::put(StreamPtr stream) {
  const std::lock_guard lock(mutex_);
  by_arn_.insert_or_assign(stream->arn(), stream);
  by_id_.insert_or_assign(stream->id, std::move(stream));
}

void Streams::drop(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return;
  by_arn_.erase(at->second->arn());
  by_id_.erase(at);
}

void Streams::replace(const std::vector<StreamPtr>& all) {
  const std::lock_guard lock(mutex_);
  by_arn_.clear();
  by_id_.clear();
  for (const auto& stream : all) {
    by_arn_.emplace(stream->arn(), stream);
    by_id_.emplace(stream->id, stream);
  }
}

std::vector<StreamPtr> Streams::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<StreamPtr> streams;
  for (const auto& [arn, stream] : by_arn_) streams.push_back(stream);
  return streams;
}

}  // namespace tabella::engine
