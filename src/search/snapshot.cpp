#include "search/snapshot.h"

#include <algorithm>
#include <unordered_map>

namespace tabella::search {

using store::Async;
using store::error_of;

namespace {

constexpr size_t kChecksAtOnce = 100;

bool in_range(const Filter& filter, std::string_view id) {
  return (filter.from.empty() || id >= filter.from) && (filter.until.empty() || id < filter.until);
}

// `document`: a Document, or its pieces as the index keeps them.
template <class Pieces>
bool text_matches(const Filter& filter, const Pieces& document) {
  return std::ranges::all_of(filter.texts, [&](const Filter::Text& text) {
    return has_text(document, text.fields, text.text) != text.negated;
  });
}

// One text for the same conditions, each time.
std::string spelled(const std::vector<Filter::Text>& texts) {
  std::string all;
  for (const auto& text : texts)
    all.append(text.negated ? "-" : "+")
        .append(text.fields)
        .append(1, '\0')
        .append(text.text)
        .append(1, '\0');
  return all;
}

}  // namespace

bool matches(const Filter& filter, const Document& document, const std::vector<std::string>& labels) {
  const auto has = [](const std::vector<std::string>& words, const Filter::Word& word) {
    const bool any = std::ranges::any_of(words, [&](const std::string& known) {
      return word.prefix ? known.starts_with(word.word) : known == word.word;
    });
    return any != word.negated;
  };
  const Entry entry{
      .id = document.id, .expires = document.expires, .size = document.size, .flags = document.flags};
  return in_range(filter, document.id) && (!filter.entry || filter.entry(entry)) &&
         std::ranges::all_of(filter.keys, [&](const auto& word) { return has(document.keys, word); }) &&
         std::ranges::all_of(filter.labels, [&](const auto& word) { return has(labels, word); }) &&
         text_matches(filter, document);
}

Async<Snapshot> Snapshot::take(Index& index, const Clock& clock, Pace& pace) {
  Snapshot snapshot(index);
  TABELLA_CO_ASSIGN(auto manifest, co_await index.manifest());
  snapshot.manifest_ = std::move(manifest);
  for (const auto& segment : snapshot.manifest_.segments) snapshot.live_.emplace_back(segment.count, true);
  snapshot.gone_.assign(snapshot.live_.size(), 0);
  const auto now = epoch_milliseconds(clock.now()) / 1000;
  TABELLA_CO_TRY(co_await snapshot.leave_out_expired(now, pace));
  TABELLA_CO_ASSIGN(auto gone, co_await index.gone());
  if (!gone.empty()) {
    TABELLA_CO_ASSIGN(auto located, co_await snapshot.locate(gone, pace));
    for (size_t i = 0; i < located.size(); ++i) {
      snapshot.gone_[i] = located[i].count();
      snapshot.live_[i] -= located[i];
    }
  }
  co_return snapshot;
}

Async<void> Snapshot::leave_out_expired(int64_t now, Pace& pace) {
  for (size_t i = 0; i < live_.size(); ++i) {
    if (!co_await pace.go_on()) co_return too_late();
    const auto& segment = manifest_.segments[i];
    if (now < segment.first_expiry) continue;
    if (now >= segment.last_expiry) {
      live_[i] = Slots(segment.count);
      continue;
    }
    TABELLA_CO_ASSIGN(auto entries, co_await index_->entries(segment));
    for (size_t slot = 0; slot < entries.size() && slot < segment.count; ++slot)
      if (now >= entries[slot].expires) live_[i].clear(slot);
  }
  co_return store::Result<void>();
}

size_t Snapshot::count() const {
  size_t count = 0;
  for (const auto& slots : live_) count += slots.count();
  return count;
}

Async<std::vector<Slots>> Snapshot::locate(const std::vector<std::string>& sorted_ids, Pace& pace) {
  struct Wanted {
    size_t segment;
    size_t block;
    const std::string* id;
  };
  std::vector<Slots> located;
  std::vector<Wanted> wanted;
  std::vector<Index::BlockName> names;
  for (size_t i = 0; i < manifest_.segments.size(); ++i) {
    const auto& segment = manifest_.segments[i];
    located.emplace_back(segment.count);
    const auto begin = std::ranges::lower_bound(sorted_ids, segment.first);
    const auto end = std::ranges::upper_bound(sorted_ids, segment.last);
    if (begin >= end) continue;
    if (!co_await pace.go_on()) co_return too_late();
    TABELLA_CO_ASSIGN(auto directory, co_await index_->directory(segment));
    for (auto id = begin; id != end; ++id) {
      wanted.push_back({i, directory->block_of_id(*id), &*id});
      names.emplace_back(segment.id, Index::entry_block(wanted.back().block));
    }
  }
  TABELLA_CO_ASSIGN(auto blocks, co_await index_->blocks(std::move(names)));
  std::map<std::pair<size_t, size_t>, std::vector<Entry>> read;
  for (const auto& [i, block, id] : wanted) {
    const auto& segment = manifest_.segments[i];
    auto& entries = read[{i, block}];
    if (entries.empty()) {
      if (!co_await pace.go_on()) co_return too_late();
      entries = read_entries(blocks[{segment.id, Index::entry_block(block)}]);
    }
    const auto found = std::ranges::lower_bound(entries, *id, {}, &Entry::id);
    if (found == entries.end() || found->id != *id) continue;
    const auto slot = block * kEntriesInBlock + static_cast<size_t>(found - entries.begin());
    if (slot < segment.count) located[i].set(slot);
  }
  co_return located;
}

std::vector<Snapshot::Place> Snapshot::newest_first(const std::vector<Slots>& slots, size_t start,
                                                    size_t limit) {
  std::vector<Place> places;
  for (size_t i = slots.size(); i-- > 0 && places.size() < limit;) {
    const auto count = slots[i].count();
    if (start >= count) {
      start -= count;
      continue;
    }
    for (size_t slot = slots[i].size(); slot-- > 0 && places.size() < limit;) {
      if (!slots[i].test(slot)) continue;
      if (start > 0)
        --start;
      else
        places.push_back({i, slot});
    }
  }
  return places;
}

Async<std::vector<Entry>> Snapshot::entries_at(std::vector<Place> places) {
  std::vector<Index::BlockName> names;
  for (const auto& place : places)
    names.emplace_back(manifest_.segments[place.segment].id,
                       Index::entry_block(place.slot / kEntriesInBlock));
  std::vector<Index::BlockName> unread;
  for (const auto& name : names)
    if (!entries_read_.contains(name)) unread.push_back(name);
  TABELLA_CO_ASSIGN(auto blocks, co_await index_->blocks(std::move(unread)));
  for (const auto& [name, block] : blocks) entries_read_[name] = read_entries(block);
  std::vector<Entry> entries;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& block = entries_read_[names[i]];
    const auto at = places[i].slot % kEntriesInBlock;
    if (at >= block.size())
      co_return store::fail(store::ErrorCode::resource_not_found, "a segment of the index is gone");
    entries.push_back(block[at]);
  }
  co_return entries;
}

Async<std::vector<Entry>> Snapshot::list(size_t start, size_t limit) {
  return entries_at(newest_first(live_, start, limit));
}

// For every segment that is of interest: the slots that have all of the terms (or some term with the prefix)
// of every query. All blocks are read together.
Async<std::vector<Slots>> Snapshot::with_terms(std::vector<TermQuery> queries,
                                               const std::vector<Slots>& where, Pace& pace) {
  struct Need {
    size_t segment;
    std::shared_ptr<const Directory> directory;
  };
  std::vector<Need> needs;
  std::vector<Index::BlockName> names;
  for (size_t i = 0; i < where.size(); ++i) {
    if (where[i].count() == 0) continue;
    if (!co_await pace.go_on()) co_return too_late();
    TABELLA_CO_ASSIGN(auto directory, co_await index_->directory(manifest_.segments[i]));
    const auto& id = manifest_.segments[i].id;
    for (const auto& query : queries) {
      for (const auto& term : query.terms)
        names.emplace_back(id, Index::term_block(directory->block_of_term(term)));
      if (query.prefix.empty()) continue;
      const auto [begin, end] = directory->blocks_of_prefix(query.prefix);
      for (size_t block = begin; block < end; ++block) names.emplace_back(id, Index::term_block(block));
    }
    needs.push_back({i, std::move(directory)});
  }
  TABELLA_CO_ASSIGN(auto blocks, co_await index_->blocks(std::move(names)));
  std::vector<Slots> matching;
  for (const auto& slots : where) matching.emplace_back(slots.size());
  for (const auto& [segment, directory] : needs) {
    const auto& id = manifest_.segments[segment].id;
    Slots all(where[segment].size(), true);
    const auto block = [&](size_t number) -> std::string_view {
      return (blocks)[{id, Index::term_block(number)}];
    };
    for (const auto& query : queries) {
      for (const auto& term : query.terms) {
        if (!co_await pace.go_on()) co_return too_late();
        Slots with(all.size());
        find_term(block(directory->block_of_term(term)), term, with);
        all &= with;
      }
      if (query.prefix.empty()) continue;
      Slots with(all.size());
      const auto [begin, end] = directory->blocks_of_prefix(query.prefix);
      for (size_t number = begin; number < end; ++number) {
        if (!co_await pace.go_on()) co_return too_late();
        find_prefix(block(number), query.prefix, with);
      }
      all &= with;
    }
    matching[segment] = std::move(all);
  }
  co_return matching;
}

// Those that may have the text in one of its fields; not `exact`: some may not.
Async<std::vector<Slots>> Snapshot::with_text(const Filter::Text& text, const std::vector<Slots>& where,
                                              bool& exact, Pace& pace) {
  std::vector<Slots> matching;
  for (const auto& slots : where) matching.emplace_back(slots.size());
  for (const char field : text.fields) {
    std::vector<TermQuery> queries;
    queries.push_back(terms_for(field, text.text));
    exact = exact && queries.front().exact;
    TABELLA_CO_ASSIGN(auto with, co_await with_terms(std::move(queries), where, pace));
    for (size_t i = 0; i < matching.size(); ++i) matching[i] |= with[i];
  }
  co_return matching;
}

Async<void> Snapshot::narrow_by_text(std::vector<Slots>& matching, const Filter& filter, bool& exact,
                                     Pace& pace) {
  for (const auto& text : filter.texts) {
    if (text.text.empty()) continue;
    bool this_exact = true;
    TABELLA_CO_ASSIGN(auto with, co_await with_text(text, matching, this_exact, pace));
    exact = exact && this_exact;
    for (size_t i = 0; i < matching.size(); ++i) {
      if (!text.negated)
        matching[i] &= with[i];
      else if (this_exact)
        matching[i] -= with[i];
    }
  }
  co_return store::Result<void>();
}

Async<void> Snapshot::narrow_by_keys(std::vector<Slots>& matching, const Filter& filter, Pace& pace) {
  for (const auto& key : filter.keys) {
    std::vector<TermQuery> queries;
    queries.push_back({.terms = {kKeyField + key.word}, .prefix = {}, .exact = true});
    TABELLA_CO_ASSIGN(auto with, co_await with_terms(std::move(queries), matching, pace));
    for (size_t i = 0; i < matching.size(); ++i)
      key.negated ? matching[i] -= with[i] : matching[i] &= with[i];
  }
  co_return store::Result<void>();
}

// In order.
Async<std::vector<std::string>> Snapshot::ids_with(const Filter::Word& label, Pace& pace) {
  if (!label.prefix) co_return co_await index_->labelled(label.word);
  TABELLA_CO_ASSIGN(auto names, co_await index_->labels());
  std::vector<std::string> all;
  for (const auto& name : names) {
    if (!name.starts_with(label.word)) continue;
    if (!co_await pace.go_on()) co_return too_late();
    TABELLA_CO_ASSIGN(auto ids, co_await index_->labelled(name));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  co_return all;
}

Async<void> Snapshot::narrow_by_labels(std::vector<Slots>& matching, const Filter& filter, Pace& pace) {
  for (const auto& label : filter.labels) {
    TABELLA_CO_ASSIGN(auto ids, co_await ids_with(label, pace));
    TABELLA_CO_ASSIGN(auto with, co_await locate(ids, pace));
    for (size_t i = 0; i < matching.size(); ++i)
      label.negated ? matching[i] -= with[i] : matching[i] &= with[i];
  }
  co_return store::Result<void>();
}

Async<void> Snapshot::narrow_by_entries(std::vector<Slots>& matching, const Filter& filter, Pace& pace) {
  for (size_t i = 0; i < matching.size(); ++i) {
    if (!co_await pace.go_on()) co_return too_late();
    const auto& segment = manifest_.segments[i];
    const bool before = !filter.from.empty() && segment.last < filter.from;
    const bool after = !filter.until.empty() && segment.first >= filter.until;
    if (before || after) matching[i] = Slots(segment.count);
    const bool inside = in_range(filter, segment.first) && in_range(filter, segment.last);
    if (matching[i].count() == 0 || (inside && !filter.entry)) continue;
    TABELLA_CO_ASSIGN(auto entries, co_await index_->entries(segment));
    for (size_t slot = 0; slot < segment.count && slot < entries.size(); ++slot) {
      const auto& entry = entries[slot];
      if (!in_range(filter, entry.id) || (filter.entry && !filter.entry(entry))) matching[i].clear(slot);
    }
  }
  co_return store::Result<void>();
}

// Those that have all the terms need not have the text: what nobody has looked at yet is looked at now.
Async<void> Snapshot::verify(std::vector<Slots>& matching, const Filter& filter, Pace& pace) {
  const auto texts = spelled(filter.texts);
  for (size_t i = matching.size(); i-- > 0;) {
    if (matching[i].count() == 0) continue;
    const auto& segment = manifest_.segments[i].id;
    auto verdict = index_->verified().get(segment, texts, matching[i].size());
    auto unseen = matching[i];
    unseen -= verdict.looked_at;
    if (unseen.count() > 0) {
      auto looked = co_await look_at(i, unseen, filter, verdict, pace);
      // What was seen so far counts also where the rest was not.
      index_->verified().add(segment, texts, verdict);
      if (!looked) co_return error_of(looked);
    }
    matching[i] &= verdict.matching;
    entries_read_.clear();  // those of one segment at a time: all of them may be too many
  }
  co_return store::Result<void>();
}

Async<void> Snapshot::look_at(size_t segment, const Slots& unseen, const Filter& filter, Verdict& verdict,
                              Pace& pace) {
  std::vector<Slots> alone(segment + 1);
  alone[segment] = unseen;
  const auto all = newest_first(alone, 0, unseen.count());
  for (size_t at = 0; at < all.size(); at += kChecksAtOnce) {
    if (!co_await pace.go_on()) co_return too_late();
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at);
    const auto end = all.begin() + static_cast<ptrdiff_t>(std::min(at + kChecksAtOnce, all.size()));
    const std::vector<Place> places(begin, end);
    TABELLA_CO_ASSIGN(auto entries, co_await entries_at(places));
    std::vector<std::string> ids;
    std::unordered_map<std::string_view, size_t> slots;
    for (const auto& entry : entries) {
      slots.emplace(entry.id, places[ids.size()].slot);
      ids.push_back(entry.id);
    }
    const auto look = [&](const std::string& id, std::string_view texts) {
      const auto slot = slots.find(id);
      if (slot == slots.end()) return;
      verdict.looked_at.set(slot->second);
      if (text_matches(filter, texts)) verdict.matching.set(slot->second);
    };
    TABELLA_CO_TRY(co_await index_->look_at_documents(ids, look, pace));
  }
  co_return store::Result<void>();
}

Async<Found> Snapshot::find(const Filter& filter, size_t start, size_t limit, Pace& pace) {
  auto matching = live_;
  bool exact = true;
  auto narrowed = co_await narrow_by_keys(matching, filter, pace);
  if (narrowed) narrowed = co_await narrow_by_text(matching, filter, exact, pace);
  if (narrowed) narrowed = co_await narrow_by_labels(matching, filter, pace);
  if (narrowed && (!filter.from.empty() || !filter.until.empty() || filter.entry))
    narrowed = co_await narrow_by_entries(matching, filter, pace);
  if (narrowed && !exact) narrowed = co_await verify(matching, filter, pace);
  if (!narrowed) co_return error_of(narrowed);
  Found found;
  for (const auto& slots : matching) found.total += slots.count();
  TABELLA_CO_ASSIGN(auto entries, co_await entries_at(newest_first(matching, start, limit)));
  found.entries = std::move(entries);
  co_return found;
}

Async<std::map<std::string, size_t>> Snapshot::keys(Pace& pace) {
  std::map<std::string, size_t> counts;
  const std::string prefix(1, kKeyField);
  for (size_t i = 0; i < live_.size(); ++i) {
    const auto& segment = manifest_.segments[i];
    TABELLA_CO_ASSIGN(auto directory, co_await index_->directory(segment));
    std::vector<Index::BlockName> names;
    const auto [begin, end] = directory->blocks_of_prefix(prefix);
    for (size_t number = begin; number < end; ++number)
      names.emplace_back(segment.id, Index::term_block(number));
    TABELLA_CO_ASSIGN(auto blocks, co_await index_->blocks(std::move(names)));
    for (const auto& [name, block] : blocks)
      for (TermCursor cursor(block); cursor.next();) {
        if (cursor.term().front() != kKeyField) continue;
        if (!co_await pace.go_on()) co_return too_late();
        Slots with(segment.count);
        find_term(block, cursor.term(), with);
        with &= live_[i];
        if (with.count() > 0) counts[cursor.term().substr(1)] += with.count();
      }
  }
  co_return counts;
}

}  // namespace tabella::search
