#include "mail/indexer.h"

#include <algorithm>

#include "mime/message.h"
#include "store/batches.h"

namespace tabella::mail {

using search::Manifest;
using search::Snapshot;
using store::Async;
using store::error_of;

namespace {

constexpr size_t kTakenAtOnce = 512;
constexpr size_t kFewest =
    64;  // worth a segment at once; fewer wait for as long again as they took to settle
constexpr size_t kLargestSegment = 4096;
constexpr size_t kMergedAtOnce = 8;
constexpr int64_t kReadersAreDone = 60;  // seconds

}  // namespace

// What fails keeps nothing else from being done.
Async<bool> Indexer::work() {
  bool more = false;
  std::optional<store::Error> failure;
  const auto note = [&](const store::Result<bool>& done) {
    if (!done && !failure) failure = done.error();
    return done.value_or(false);
  };
  const bool taken = note(co_await take_in());
  more = note(co_await merge_some()) || taken;
  more = note(co_await clear_away()) || more;
  if (!taken) note(co_await forget_gone());
  more = note(co_await keep_to_limit()) || more;
  if (failure) co_return std::unexpected(std::move(*failure));
  co_return more;
}

Async<bool> Indexer::take_in() {
  Pace pace;
  TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
  mail_.observe(manifest);
  // The longest that any process on this store has asked for.
  const auto settle = std::max<int64_t>(mail_.options().settle.count(), manifest.settle) * 1'000'000;
  const auto settled = id_prefix(mail_.settled(settle));
  if (manifest.indexed_to > settled) co_return false;
  TABELLA_CO_ASSIGN(auto messages,
                    co_await mail_.next(manifest.indexed_to, settled, kTakenAtOnce, Load::whole, pace));
  auto next = manifest;
  if (messages.empty()) {
    // The tail begins where the index ends: it should not begin long ago.
    const auto end = created_of(manifest.indexed_to);
    if (manifest.version > 0 && end && mail_.now() - *end < 3600 * kSecond) co_return false;
    next.indexed_to = settled + "|";
    TABELLA_CO_TRY(co_await index_.commit(std::move(next)));
    co_return false;
  }
  if (messages.size() < kFewest && mail_.now() - messages.front().created < 2 * settle) co_return false;
  // An index is not built on trust: what is not in order would be found twice, or never.
  if (messages.front().id <= manifest.indexed_to ||
      !std::ranges::is_sorted(messages, std::less_equal<>(), &Message::id))
    co_return store::fail(store::ErrorCode::internal, "messages to be indexed are not in order");
  search::SegmentBuilder builder;
  std::vector<search::Document> documents;
  for (const auto& message : messages) {
    co_await pace.go_on();
    auto document = document_of(message, mime::parse(message.raw));
    builder.add(document);
    document.keys.clear();
    documents.push_back(std::move(document));
  }
  TABELLA_CO_TRY(co_await index_.put_documents(documents));
  const auto entries = builder.entries();
  TABELLA_CO_ASSIGN(auto segment, co_await index_.write_segment(builder.finish(), entries));
  next.indexed_to = messages.back().id;
  next.segments.push_back(segment);
  TABELLA_CO_ASSIGN(auto committed, co_await index_.commit(std::move(next)));
  if (!committed) co_return co_await drop_unused(std::move(segment));
  indexed_ += messages.size();
  co_return messages.size() >= kFewest;
}

// Replaces segments [begin, end) by one that has what is alive of them.
Async<void> Indexer::replace(Manifest next, size_t begin, size_t end) {
  Pace pace;
  TABELLA_CO_ASSIGN(auto snapshot, co_await Snapshot::take(index_, mail_.clock(), pace));
  if (snapshot.manifest().version != next.version) co_return store::Result<void>();
  std::vector<search::MergeInput> inputs;
  for (size_t i = begin; i < end; ++i) {
    co_await pace.go_on();
    const auto& segment = next.segments[i];
    search::MergeInput input;
    TABELLA_CO_ASSIGN(auto entries, co_await index_.entries(segment));
    input.entries = std::move(entries);
    std::vector<search::Index::BlockName> names;
    for (size_t number = 0; number < segment.term_blocks; ++number)
      names.emplace_back(segment.id, search::Index::term_block(number));
    TABELLA_CO_ASSIGN(auto blocks, co_await index_.blocks(names));
    for (const auto& name : names) input.terms.push_back(std::move(blocks[name]));
    input.kept = snapshot.live(i);
    inputs.push_back(std::move(input));
  }
  auto merged = search::merge(std::move(inputs));
  const auto now = mail_.now() / kSecond;
  for (size_t i = begin; i < end; ++i)
    next.condemned.push_back({.segment = next.segments[i], .since = now, .documents = false});
  const auto first = next.segments.begin() + static_cast<ptrdiff_t>(begin);
  const auto place = next.segments.erase(first, next.segments.begin() + static_cast<ptrdiff_t>(end));
  std::optional<search::SegmentInfo> made;
  if (!merged.entries.empty()) {
    TABELLA_CO_ASSIGN(auto segment,
                      co_await index_.write_segment(std::move(merged.blocks), std::move(merged.entries)));
    next.segments.insert(place, segment);
    made = std::move(segment);
  }
  TABELLA_CO_ASSIGN(auto committed, co_await index_.commit(std::move(next)));
  if (committed) ++merged_;
  if (committed || !made) co_return store::Result<void>();
  TABELLA_CO_TRY(co_await drop_unused(std::move(*made)));
  co_return store::Result<void>();
}

// Somebody else was faster: the segment was made for nothing.
Async<bool> Indexer::drop_unused(search::SegmentInfo segment) {
  TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
  const auto is_it = [&](const search::SegmentInfo& other) { return other.id == segment.id; };
  const bool used = std::ranges::any_of(manifest.segments, is_it) ||
                    std::ranges::any_of(manifest.condemned, is_it, &search::Condemned::segment);
  if (used) co_return true;
  TABELLA_CO_TRY(co_await index_.remove_segment(std::move(segment)));
  co_return true;
}

Async<bool> Indexer::merge_some() {
  Pace pace;
  TABELLA_CO_ASSIGN(auto snapshot, co_await Snapshot::take(index_, mail_.clock(), pace));
  const auto& segments = snapshot.manifest().segments;
  // What has expired as a whole, or is mostly gone.
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto live = snapshot.live(i).count();
    const bool hollow = snapshot.gone_in(i) > std::max<size_t>(64, segments[i].count / 8);
    if (live > 0 && !hollow) continue;
    TABELLA_CO_TRY(co_await replace(snapshot.manifest(), i, i + 1));
    co_return true;
  }
  // A run of neighbours, none of which has most of it: so each document is written anew a few times, not each
  // time that some more come.
  for (size_t begin = 0; begin + kMergedAtOnce <= segments.size(); ++begin) {
    size_t count = 0;
    size_t largest = 0;
    for (size_t i = begin; i < begin + kMergedAtOnce; ++i) {
      count += segments[i].count;
      largest = std::max(largest, segments[i].count);
    }
    if (count > kLargestSegment || largest * 2 > count) continue;
    TABELLA_CO_TRY(co_await replace(snapshot.manifest(), begin, begin + kMergedAtOnce));
    co_return true;
  }
  co_return false;
}

Async<bool> Indexer::clear_away() {
  TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
  const auto now = mail_.now() / kSecond;
  const auto ripe = std::ranges::find_if(manifest.condemned, [&](const search::Condemned& condemned) {
    return condemned.documents || now - condemned.since >= kReadersAreDone;
  });
  if (ripe == manifest.condemned.end()) co_return false;
  if (ripe->documents) {
    // The messages first; the segment's rows are what says which they are.
    auto entries = co_await index_.entries(ripe->segment);
    if (entries) {
      constexpr size_t kAtOnce = 100;
      for (size_t at = 0; at < entries->size(); at += kAtOnce) {
        std::vector<std::string> ids;
        for (size_t i = at; i < std::min(at + kAtOnce, entries->size()); ++i) ids.push_back((*entries)[i].id);
        TABELLA_CO_TRY(co_await mail_.remove_many(std::move(ids), true));
        if (stopping_) co_return false;
      }
    } else if (entries.error().code != store::ErrorCode::resource_not_found) {
      co_return error_of(entries);
    }
    ripe->documents = false;
    ripe->since = now;
  } else {
    TABELLA_CO_TRY(co_await index_.remove_segment(ripe->segment));
    manifest.condemned.erase(ripe);
  }
  TABELLA_CO_TRY(co_await index_.commit(std::move(manifest)));
  co_return true;
}

// Notes about messages that went before they were indexed, or whose segment was made anew without them.
Async<bool> Indexer::forget_gone() {
  Pace pace;
  TABELLA_CO_ASSIGN(auto snapshot, co_await Snapshot::take(index_, mail_.clock(), pace));
  const auto& manifest = snapshot.manifest();
  if (manifest.version == forgot_at_) co_return false;
  TABELLA_CO_ASSIGN(auto gone, co_await index_.gone());
  if (!gone.empty()) {
    TABELLA_CO_ASSIGN(auto located, co_await snapshot.locate(gone, pace));
    size_t needed = 0;
    for (const auto& slots : located) needed += slots.count();
    std::vector<std::string> needless;
    for (const auto& id : gone) {
      co_await pace.go_on();
      // Whoever still reads a condemned segment needs them, too.
      const auto covers = [&](const search::SegmentInfo& s) { return id >= s.first && id <= s.last; };
      const bool read = std::ranges::any_of(manifest.condemned, covers, &search::Condemned::segment);
      if (!read && id <= manifest.indexed_to) needless.push_back(id);
    }
    if (needed > 0) {
      // Some are in segments: those stay.
      std::vector<std::string> kept;
      for (size_t i = 0; i < located.size(); ++i) {
        if (located[i].count() == 0) continue;
        co_await pace.go_on();
        TABELLA_CO_ASSIGN(auto entries, co_await index_.entries(manifest.segments[i]));
        for (size_t slot = 0; slot < entries.size(); ++slot)
          if (located[i].test(slot)) kept.push_back(entries[slot].id);
      }
      std::erase_if(needless, [&](const std::string& id) { return std::ranges::binary_search(kept, id); });
    }
    TABELLA_CO_TRY(co_await index_.remove_gone(needless));
  }
  forgot_at_ = manifest.version;
  co_return false;
}

// The oldest go, as many as there are too many.
Async<bool> Indexer::keep_to_limit() {
  const auto most = mail_.options().most_messages;
  if (most == 0) co_return false;
  constexpr size_t kAtOnce = 500;
  Pace pace;
  TABELLA_CO_ASSIGN(auto total, co_await mail_.count(Deadline::max()));
  if (total <= most) co_return false;
  const size_t over = std::min(total - most, kAtOnce);
  TABELLA_CO_ASSIGN(auto snapshot, co_await Snapshot::take(index_, mail_.clock(), pace));
  std::vector<std::string> ids;
  if (const size_t indexed = snapshot.count(); indexed > 0) {
    const size_t some = std::min(over, indexed);
    TABELLA_CO_ASSIGN(auto entries, co_await snapshot.list(indexed - some, some));
    for (auto& entry : entries) ids.push_back(std::move(entry.id));
  } else {
    TABELLA_CO_ASSIGN(auto oldest,
                      co_await mail_.next(snapshot.manifest().indexed_to, "~", over, Load::head, pace));
    for (auto& message : oldest) ids.push_back(std::move(message.id));
  }
  TABELLA_CO_TRY(co_await mail_.remove_many(std::move(ids)));
  co_return total - over > most;
}

void Indexer::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_mail_indexed_total", "Messages taken into the search index",
              static_cast<double>(indexed_));
  out.counter("tabella_mail_merges_total", "Segments of the search index that were made of others",
              static_cast<double>(merged_));
}

}  // namespace tabella::mail
