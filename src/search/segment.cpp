#include "search/segment.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/bytes.h"

namespace tabella::search {
namespace {

constexpr size_t kTermBlock = 12 * 1024;

// Writes sorted terms into blocks.
class TermWriter {
 public:
  void add(std::string_view term, const std::vector<uint32_t>& slots) {
    if (blocks_.empty() || blocks_.back().size() >= kTermBlock) {
      blocks_.emplace_back();
      first_.emplace_back(term);
      last_.clear();
    }
    auto& block = blocks_.back();
    const auto shared = static_cast<size_t>(std::ranges::mismatch(last_, term).in1 - last_.begin());
    put_varint(block, shared);
    put_sized(block, term.substr(shared));
    put_varint(block, slots.size());
    std::string differences;
    for (uint32_t before = 0; const auto slot : slots) {
      put_varint(differences, slot - before);
      before = slot;
    }
    put_sized(block, differences);
    last_ = term;
  }
  std::vector<std::string> take_blocks() { return std::move(blocks_); }
  std::vector<std::string> take_first() { return std::move(first_); }

 private:
  std::vector<std::string> blocks_;
  std::vector<std::string> first_;
  std::string last_;
};

void write_entries(const std::vector<Entry>& entries, std::vector<std::string>& blocks,
                   std::vector<std::string>& first) {
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i % kEntriesInBlock == 0) {
      blocks.emplace_back();
      first.push_back(entries[i].id);
    }
    auto& block = blocks.back();
    put_sized(block, entries[i].id);
    put_varint(block, static_cast<uint64_t>(entries[i].expires));
    put_varint(block, entries[i].size);
    put_varint(block, entries[i].flags);
  }
}

SegmentBlocks put_together(TermWriter writer, const std::vector<Entry>& entries) {
  SegmentBlocks blocks;
  std::vector<std::string> first_ids;
  write_entries(entries, blocks.entries, first_ids);
  blocks.terms = writer.take_blocks();
  blocks.directory = Directory(writer.take_first(), std::move(first_ids)).bytes();
  return blocks;
}

}  // namespace

Slots::Slots(size_t size, bool all) : size_(size), bits_((size + 63) / 64, all ? ~0ull : 0) {
  if (all && size % 64 != 0) bits_.back() = (1ull << (size % 64)) - 1;
}
Slots& Slots::operator&=(const Slots& other) {
  for (size_t i = 0; i < bits_.size(); ++i) bits_[i] &= other.bits_[i];
  return *this;
}
Slots& Slots::operator|=(const Slots& other) {
  for (size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
  return *this;
}
Slots& Slots::operator-=(const Slots& other) {
  for (size_t i = 0; i < bits_.size(); ++i) bits_[i] &= ~other.bits_[i];
  return *this;
}
size_t Slots::count() const {
  size_t count = 0;
  for (const auto bits : bits_) count += static_cast<size_t>(std::popcount(bits));
  return count;
}

Directory::Directory(std::string_view bytes) {
  for (auto* list : {&first_terms_, &first_ids_}) {
    const auto count = take_varint(bytes);
    for (uint64_t i = 0; i < count && !bytes.empty(); ++i) list->emplace_back(take_sized(bytes));
  }
}

std::string Directory::bytes() const {
  std::string bytes;
  for (const auto* list : {&first_terms_, &first_ids_}) {
    put_varint(bytes, list->size());
    for (const auto& first : *list) put_sized(bytes, first);
  }
  return bytes;
}

namespace {
// The last block whose first is not behind `key`; the first block if there is none.
size_t block_for(const std::vector<std::string>& first, std::string_view key) {
  const auto after = std::ranges::upper_bound(first, key, std::less<>());
  return after == first.begin() ? 0 : static_cast<size_t>(after - first.begin()) - 1;
}
}  // namespace

size_t Directory::block_of_term(std::string_view term) const { return block_for(first_terms_, term); }
size_t Directory::block_of_id(std::string_view id) const { return block_for(first_ids_, id); }

std::pair<size_t, size_t> Directory::blocks_of_prefix(std::string_view prefix) const {
  const size_t begin = block_for(first_terms_, prefix);
  size_t end = begin;
  while (end < first_terms_.size() &&
         (end == begin || std::string_view(first_terms_[end]).substr(0, prefix.size()) <= prefix))
    ++end;
  return {begin, end};
}

bool TermCursor::next() {
  if (!read_) take_sized(rest_);
  if (rest_.empty()) return false;
  const auto shared = take_varint(rest_);
  const auto suffix = take_sized(rest_);
  term_.resize(std::min<size_t>(shared, term_.size()));
  term_.append(suffix);
  count_ = take_varint(rest_);
  read_ = false;
  return true;
}

template <class Visit>
void TermCursor::slots(Visit visit) {
  auto differences = take_sized(rest_);
  read_ = true;
  uint64_t slot = 0;
  for (size_t i = 0; i < count_ && !differences.empty(); ++i) visit(slot += take_varint(differences));
}

void find_term(std::string_view block, std::string_view term, Slots& into) {
  for (TermCursor cursor(block); cursor.next() && cursor.term() <= term;)
    if (cursor.term() == term)
      cursor.slots([&](uint64_t slot) {
        if (slot < into.size()) into.set(slot);
      });
}

void find_prefix(std::string_view block, std::string_view prefix, Slots& into) {
  for (TermCursor cursor(block); cursor.next();) {
    const auto begin = std::string_view(cursor.term()).substr(0, prefix.size());
    if (begin > prefix) return;
    if (begin == prefix)
      cursor.slots([&](uint64_t slot) {
        if (slot < into.size()) into.set(slot);
      });
  }
}

std::vector<Entry> read_entries(std::string_view block) {
  std::vector<Entry> entries;
  while (!block.empty()) {
    Entry entry;
    entry.id = take_sized(block);
    entry.expires = static_cast<int64_t>(take_varint(block));
    entry.size = take_varint(block);
    entry.flags = static_cast<uint32_t>(take_varint(block));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::pair<Trigram, uint32_t>>& SegmentBuilder::pairs_of(char field) {
  for (auto& terms : fields_)
    if (terms.field == field) return terms.pairs;
  return fields_.emplace_back(FieldTerms{field, {}}).pairs;
}

void SegmentBuilder::add(const Document& document) {
  const auto slot = static_cast<uint32_t>(entries_.size());
  entries_.push_back(
      {.id = document.id, .expires = document.expires, .size = document.size, .flags = document.flags});
  const auto index = [&](char field, bool only) {
    scratch_.clear();
    for (const auto& piece : document.pieces)
      if (!only || piece.field == field) append_trigrams(scratch_, piece.text);
    std::ranges::sort(scratch_);
    scratch_.erase(std::ranges::unique(scratch_).begin(), scratch_.end());
    auto& pairs = pairs_of(field);
    for (const auto trigram : scratch_) pairs.emplace_back(trigram, slot);
  };
  index(kAnyField, false);
  std::string fields;
  for (const auto& piece : document.pieces)
    if (piece.field != kAnyField && fields.find(piece.field) == std::string::npos)
      fields.push_back(piece.field);
  for (const char field : fields) index(field, true);
  for (const auto& key : document.keys) keys_.emplace_back(kKeyField + key, slot);
}

SegmentBlocks SegmentBuilder::finish() {
  // The order of terms is that of their bytes: the field comes first.
  std::map<char, std::vector<std::pair<Trigram, uint32_t>>*> by_field;
  for (auto& terms : fields_) by_field[terms.field] = &terms.pairs;
  TermWriter writer;
  std::vector<uint32_t> slots;
  const auto write_keys = [&] {
    std::ranges::sort(keys_);
    for (size_t i = 0; i < keys_.size();) {
      const size_t begin = i;
      slots.clear();
      for (; i < keys_.size() && keys_[i].first == keys_[begin].first; ++i)
        if (slots.empty() || slots.back() != keys_[i].second) slots.push_back(keys_[i].second);
      writer.add(keys_[begin].first, slots);
    }
    keys_.clear();
  };
  for (auto& [field, pairs] : by_field) {
    if (field > kKeyField) write_keys();
    std::ranges::sort(*pairs);
    for (size_t i = 0; i < pairs->size();) {
      const auto trigram = (*pairs)[i].first;
      slots.clear();
      for (; i < pairs->size() && (*pairs)[i].first == trigram; ++i) slots.push_back((*pairs)[i].second);
      writer.add(term_of(field, trigram), slots);
    }
    *pairs = {};
  }
  write_keys();
  return put_together(std::move(writer), entries_);
}

namespace {

// All terms of an input in order, with the slots that its documents have in the merged segment.
class MergeCursor {
 public:
  MergeCursor(const MergeInput& input, std::vector<int64_t> slots)
      : input_(input), slots_(std::move(slots)), cursor_(block(0)) {
    advance();
  }
  bool done() const { return done_; }
  const std::string& term() const { return cursor_.term(); }
  void take(std::vector<uint32_t>& into) {
    cursor_.slots([&](uint64_t slot) {
      if (slot < slots_.size() && slots_[slot] >= 0) into.push_back(static_cast<uint32_t>(slots_[slot]));
    });
    advance();
  }

 private:
  std::string_view block(size_t i) const {
    return i < input_.terms.size() ? std::string_view(input_.terms[i]) : "";
  }
  void advance() {
    while (!cursor_.next()) {
      if (++at_ >= input_.terms.size()) {
        done_ = true;
        return;
      }
      cursor_ = TermCursor(block(at_));
    }
  }

  const MergeInput& input_;
  const std::vector<int64_t> slots_;
  size_t at_ = 0;
  TermCursor cursor_;
  bool done_ = false;
};

// Which document of which input comes when: those that stay, by id.
std::vector<std::pair<size_t, size_t>> places_in_order(const std::vector<MergeInput>& inputs) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t slot = 0; slot < inputs[i].entries.size(); ++slot)
      if (inputs[i].kept.test(slot)) places.emplace_back(i, slot);
  std::ranges::sort(places, {}, [&](const auto& place) -> const std::string& {
    return inputs[place.first].entries[place.second].id;
  });
  return places;
}

}  // namespace

Merged merge(std::vector<MergeInput> inputs) {
  Merged merged;
  std::vector<MergeCursor> cursors;
  cursors.reserve(inputs.size());
  auto places = places_in_order(inputs);
  std::vector<std::vector<int64_t>> new_slots;
  for (const auto& input : inputs) new_slots.emplace_back(input.entries.size(), -1);
  for (const auto& [input, slot] : places) {
    new_slots[input][slot] = static_cast<int64_t>(merged.entries.size());
    merged.entries.push_back(std::move(inputs[input].entries[slot]));
  }
  for (size_t i = 0; i < inputs.size(); ++i) cursors.emplace_back(inputs[i], std::move(new_slots[i]));
  TermWriter writer;
  std::vector<uint32_t> slots;
  while (true) {
    const std::string* least = nullptr;
    for (const auto& cursor : cursors)
      if (!cursor.done() && (!least || cursor.term() < *least)) least = &cursor.term();
    if (!least) break;
    const std::string term = *least;
    slots.clear();
    for (auto& cursor : cursors)
      if (!cursor.done() && cursor.term() == term) cursor.take(slots);
    if (!std::ranges::is_sorted(slots)) std::ranges::sort(slots);
    if (!slots.empty()) writer.add(term, slots);
  }
  merged.blocks = put_together(std::move(writer), merged.entries);
  return merged;
}

}  // namespace tabella::search
