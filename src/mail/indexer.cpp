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

// Adds a message to a segment. What is left of its document is for those who look at its text again.
search::Document add_to(search::SegmentBuilder& builder, const Message& message) {
  auto document = document_of(message, mime::parse(message.raw));
  builder.add(document);
  document.keys.clear();
  return document;
}

search::MergeInput finish(search::SegmentBuilder& builder) {
  auto entries = builder.entries();
  search::Slots all(entries.size(), true);
  return {.terms = builder.finish().terms, .entries = std::move(entries), .kept = std::move(all)};
}

// Two, where one would be too large.
std::vector<search::Merged> merge_and_split(const std::vector<search::MergeInput>& inputs) {
  std::vector<std::string> ids;
  for (const auto& input : inputs)
    for (size_t slot = 0; slot < input.entries.size(); ++slot)
      if (input.kept.test(slot)) ids.push_back(input.entries[slot].id);
  std::vector<search::Merged> merged;
  if (ids.size() <= kLargestSegment) {
    merged.push_back(search::merge(inputs));
    return merged;
  }
  const auto middle = ids.begin() + static_cast<ptrdiff_t>(ids.size() / 2);
  std::ranges::nth_element(ids, middle);
  for (const bool upper : {false, true}) {
    auto half = inputs;
    for (auto& input : half)
      for (size_t slot = 0; slot < input.entries.size(); ++slot)
        if ((input.entries[slot].id >= *middle) != upper) input.kept.clear(slot);
    merged.push_back(search::merge(std::move(half)));
  }
  return merged;
}

// Which of the ids belong where the first does: into the segment [place], if it has that place in it, or else
// in front of it.
struct Place {
  size_t segment;
  bool inside;
  std::vector<std::string> ids;
};
Place first_place(const Manifest& manifest, const std::vector<std::string>& ids) {
  const auto& segments = manifest.segments;
  const auto next = std::ranges::lower_bound(segments, ids.front(), {}, &search::SegmentInfo::last);
  const bool inside = next != segments.end() && next->first <= ids.front();
  const auto end = std::ranges::find_if(ids, [&](const std::string& id) {
    if (inside) return id > next->last;
    return next == segments.end() ? id > manifest.indexed_to : id >= next->first;
  });
  return {.segment = static_cast<size_t>(next - segments.begin()),
          .inside = inside,
          .ids = std::vector<std::string>(ids.begin(), end)};
}

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
  more = note(co_await take_late()) || taken;
  more = note(co_await merge_some()) || more;
  more = note(co_await clear_away()) || more;
  if (!taken) note(co_await forget_gone());
  more = note(co_await keep_to_limit()) || more;
  if (failure) co_return std::unexpected(std::move(*failure));
  co_return more;
}

// Of a message that another program has put with its tags.
Async<void> Indexer::add_labels(const Message& message) {
  for (const auto& label : labels_of(message))
    TABELLA_CO_TRY(co_await index_.add_label(label, message.id, message.expires));
  co_return store::Result<void>();
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
    documents.push_back(add_to(builder, message));
    TABELLA_CO_TRY(co_await add_labels(message));
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
    TABELLA_CO_ASSIGN(auto input, co_await read_whole(next.segments[i], snapshot.live(i)));
    inputs.push_back(std::move(input));
  }
  std::vector<search::Merged> merged;
  merged.push_back(search::merge(std::move(inputs)));
  TABELLA_CO_ASSIGN(auto exchanged, co_await exchange(std::move(next), begin, end, std::move(merged)));
  if (exchanged) ++merged_;
  co_return store::Result<void>();
}

Async<search::MergeInput> Indexer::read_whole(search::SegmentInfo segment, search::Slots kept) {
  TABELLA_CO_ASSIGN(auto entries, co_await index_.entries(segment));
  std::vector<search::Index::BlockName> names;
  for (size_t number = 0; number < segment.term_blocks; ++number)
    names.emplace_back(segment.id, search::Index::term_block(number));
  TABELLA_CO_ASSIGN(auto blocks, co_await index_.blocks(names));
  search::MergeInput input{.terms = {}, .entries = std::move(entries), .kept = std::move(kept)};
  for (const auto& name : names) input.terms.push_back(std::move(blocks[name]));
  co_return input;
}

// Puts new segments, those that are not empty, in the place of [begin, end). False if somebody else was
// faster.
Async<bool> Indexer::exchange(Manifest next, size_t begin, size_t end, std::vector<search::Merged> merged) {
  const auto now = mail_.now() / kSecond;
  for (size_t i = begin; i < end; ++i)
    next.condemned.push_back({.segment = next.segments[i], .since = now, .documents = false});
  const auto first = next.segments.begin() + static_cast<ptrdiff_t>(begin);
  const auto place = next.segments.erase(first, next.segments.begin() + static_cast<ptrdiff_t>(end));
  std::vector<search::SegmentInfo> made;
  for (auto& one : merged) {
    if (one.entries.empty()) continue;
    TABELLA_CO_ASSIGN(auto segment,
                      co_await index_.write_segment(std::move(one.blocks), std::move(one.entries)));
    made.push_back(std::move(segment));
  }
  next.segments.insert(place, made.begin(), made.end());
  TABELLA_CO_ASSIGN(auto committed, co_await index_.commit(std::move(next)));
  if (committed) co_return true;
  for (auto& segment : made) {
    TABELLA_CO_TRY(co_await drop_unused(std::move(segment)));
  }
  co_return false;
}

// Those of the messages that are there, as a segment to be merged.
Async<search::MergeInput> Indexer::read_messages(std::vector<std::string> ids, Pace& pace) {
  search::SegmentBuilder builder;
  for (size_t at = 0; at < ids.size(); at += Mail::kLoadedAtOnce) {
    const auto some = std::span(ids).subspan(at, std::min(Mail::kLoadedAtOnce, ids.size() - at));
    TABELLA_CO_ASSIGN(auto messages, co_await mail_.load_some({some.begin(), some.end()}, Load::whole));
    std::vector<search::Document> documents;
    for (const auto& message : messages) {
      co_await pace.go_on();
      documents.push_back(add_to(builder, message));
      TABELLA_CO_TRY(co_await add_labels(message));
    }
    TABELLA_CO_TRY(co_await index_.put_documents(documents));
  }
  co_return finish(builder);
}

// One place in the index at a time: a segment that they belong into is made anew with them, between two they
// become one of their own.
Async<bool> Indexer::take_late() {
  Pace pace;
  TABELLA_CO_ASSIGN(auto noted, co_await index_.late(kTakenAtOnce));
  if (noted.empty()) co_return false;
  TABELLA_CO_ASSIGN(auto snapshot, co_await Snapshot::take(index_, mail_.clock(), pace));
  const auto& manifest = snapshot.manifest();
  // Where the index is not yet, it may still find them by itself: that shows when it is past them.
  if (noted.front() > manifest.indexed_to) co_return false;
  const auto [segment, inside, ids] = first_place(manifest, noted);
  auto missing = ids;
  std::vector<search::MergeInput> inputs;
  if (inside) {
    TABELLA_CO_ASSIGN(auto input, co_await read_whole(manifest.segments[segment], snapshot.live(segment)));
    // One that had been deleted, and was put again, is not among them.
    std::erase_if(missing, [&](const std::string& id) {
      const auto entry = std::ranges::lower_bound(input.entries, id, {}, &search::Entry::id);
      return entry != input.entries.end() && entry->id == id &&
             input.kept.test(static_cast<size_t>(entry - input.entries.begin()));
    });
    inputs.push_back(std::move(input));
  }
  // Before they are read: one that is deleted after that is noted as gone anew.
  TABELLA_CO_TRY(co_await index_.remove_gone(missing));
  TABELLA_CO_ASSIGN(auto late, co_await read_messages(std::move(missing), pace));
  if (const auto count = late.entries.size(); count > 0) {
    inputs.push_back(std::move(late));
    TABELLA_CO_ASSIGN(auto exchanged, co_await exchange(manifest, segment, segment + (inside ? 1 : 0),
                                                        merge_and_split(inputs)));
    if (!exchanged) co_return true;
    indexed_ += count;
  }
  TABELLA_CO_TRY(co_await index_.remove_late(ids));
  co_return true;
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
