// An immutable part of the index: some documents, oldest first, each with a slot, and for every term the
// slots of those that have it. It is kept in blocks that fit into items:
//
//   terms      sorted: bytes shared with the term before · length of the rest · rest · number of slots ·
//              their differences, all numbers as varints
//   entries    256 documents each: id · expiry · size · flags
//   directory  the first term of each block of terms, the first id of each block of entries
//
// docs/storage_format.md, "Search"; do not change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "search/document.h"
#include "search/terms.h"

namespace tabella::search {

// Which slots, one bit for each.
class Slots {
 public:
  Slots() = default;
  explicit Slots(size_t size, bool all = false);
  size_t size() const { return size_; }
  bool test(size_t slot) const { return bits_[slot / 64] >> (slot % 64) & 1; }
  void set(size_t slot) { bits_[slot / 64] |= 1ull << (slot % 64); }
  void clear(size_t slot) { bits_[slot / 64] &= ~(1ull << (slot % 64)); }
  Slots& operator&=(const Slots& other);
  Slots& operator|=(const Slots& other);
  Slots& operator-=(const Slots& other);
  size_t count() const;

 private:
  size_t size_ = 0;
  std::vector<uint64_t> bits_;
};

struct Entry {
  std::string id;
  int64_t expires = 0;
  uint64_t size = 0;
  uint32_t flags = 0;
};

inline constexpr size_t kEntriesInBlock = 256;

struct SegmentBlocks {
  std::string directory;
  std::vector<std::string> terms;
  std::vector<std::string> entries;
};

class Directory {
 public:
  explicit Directory(std::string_view bytes);
  std::string bytes() const;
  Directory(std::vector<std::string> terms, std::vector<std::string> ids)
      : first_terms_(std::move(terms)), first_ids_(std::move(ids)) {}

  // The block that has the term, if any has.
  size_t block_of_term(std::string_view term) const;
  // The blocks that may have terms with that beginning: first and one past the last.
  std::pair<size_t, size_t> blocks_of_prefix(std::string_view prefix) const;
  size_t block_of_id(std::string_view id) const;

 private:
  std::vector<std::string> first_terms_;
  std::vector<std::string> first_ids_;
};

// Goes through a block of terms.
class TermCursor {
 public:
  explicit TermCursor(std::string_view block) : rest_(block) {}
  bool next();
  const std::string& term() const { return term_; }
  size_t count() const { return count_; }
  // The slots of the term, if nobody has asked for them yet.
  template <class Visit>
  void slots(Visit visit);

 private:
  std::string_view rest_;
  std::string term_;
  size_t count_ = 0;
  bool read_ = true;
};

// Adds the slots of the term, or of all terms with that beginning.
void find_term(std::string_view block, std::string_view term, Slots& into);
void find_prefix(std::string_view block, std::string_view prefix, Slots& into);

std::vector<Entry> read_entries(std::string_view block);

// Puts a segment together from documents, given oldest first.
class SegmentBuilder {
 public:
  void add(const Document& document);
  size_t count() const { return entries_.size(); }
  const std::vector<Entry>& entries() const { return entries_; }
  SegmentBlocks finish();

 private:
  struct FieldTerms {
    char field;
    std::vector<std::pair<Trigram, uint32_t>> pairs;
  };
  std::vector<std::pair<Trigram, uint32_t>>& pairs_of(char field);

  std::vector<Entry> entries_;
  std::vector<FieldTerms> fields_;
  std::vector<std::pair<std::string, uint32_t>> keys_;
  std::vector<Trigram> scratch_;
};

// A segment in memory, to be merged: all its blocks, and which of its documents stay.
struct MergeInput {
  std::vector<std::string> terms;
  std::vector<Entry> entries;
  Slots kept;
};

struct Merged {
  SegmentBlocks blocks;
  std::vector<Entry> entries;
};

// The documents of all inputs by their ids, which no two share, without those that do not stay.
Merged merge(std::vector<MergeInput> inputs);

}  // namespace tabella::search
