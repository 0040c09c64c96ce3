// The index at one moment: which of its documents are alive, where each is, and which match.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "search/index.h"

namespace tabella::search {

// What a document must be like. All conditions hold together.
struct Filter {
  struct Text {
    std::string fields{kAnyField};  // in any of them
    std::string text;               // folded
    bool negated = false;
  };
  struct Word {
    std::string word;  // a key or a label
    bool negated = false;
    bool prefix = false;  // of a label: any that begins with the word
  };
  std::vector<Text> texts;
  std::vector<Word> keys;
  std::vector<Word> labels;
  // Ids: not before the first, and before the second; empty: no such bound.
  std::string from, until;
  // Of size and flags; empty: any.
  std::function<bool(const Entry&)> entry;

  bool empty() const {
    return texts.empty() && keys.empty() && labels.empty() && from.empty() && until.empty() && !entry;
  }
};

// Whether a document that is not in the index, with its labels, is so.
bool matches(const Filter& filter, const Document& document, const std::vector<std::string>& labels);

struct Found {
  std::vector<Entry> entries;  // newest first
  size_t total = 0;
};

// On one thread, with an index that outlives it.
class Snapshot {
 public:
  static store::Async<Snapshot> take(Index& index, const Clock& clock, Pace& pace);

  const Manifest& manifest() const { return manifest_; }
  size_t count() const;
  size_t gone_in(size_t segment) const { return gone_[segment]; }
  const Slots& live(size_t segment) const { return live_[segment]; }

  store::Async<std::vector<Entry>> list(size_t start, size_t limit);
  // Ends with ErrorCode::unavailable at the deadline; who asks again goes on from there.
  store::Async<Found> find(const Filter& filter, size_t start, size_t limit, Pace& pace);
  // Where the ids are, of those that are in the index.
  store::Async<std::vector<Slots>> locate(const std::vector<std::string>& sorted_ids, Pace& pace);
  // Keys with how many documents have each.
  store::Async<std::map<std::string, size_t>> keys(Pace& pace);

 private:
  explicit Snapshot(Index& index) : index_(&index) {}

  store::Async<void> leave_out_expired(int64_t now, Pace& pace);
  store::Async<void> narrow_by_text(std::vector<Slots>& matching, const Filter& filter, bool& exact,
                                    Pace& pace);
  store::Async<std::vector<Slots>> with_text(const Filter::Text& text, const std::vector<Slots>& where,
                                             bool& exact, Pace& pace);
  store::Async<void> narrow_by_keys(std::vector<Slots>& matching, const Filter& filter, Pace& pace);
  store::Async<void> narrow_by_labels(std::vector<Slots>& matching, const Filter& filter, Pace& pace);
  store::Async<void> narrow_by_entries(std::vector<Slots>& matching, const Filter& filter, Pace& pace);
  store::Async<void> verify(std::vector<Slots>& matching, const Filter& filter, Pace& pace);
  store::Async<void> look_at(size_t segment, const Slots& unseen, const Filter& filter, Verdict& verdict,
                             Pace& pace);
  store::Async<std::vector<Slots>> with_terms(std::vector<TermQuery> queries, const std::vector<Slots>& where,
                                              Pace& pace);

  struct Place {
    size_t segment;
    size_t slot;
  };
  static std::vector<Place> newest_first(const std::vector<Slots>& slots, size_t start, size_t limit);
  store::Async<std::vector<std::string>> ids_with(const Filter::Word& label, Pace& pace);
  store::Async<std::vector<Entry>> entries_at(std::vector<Place> places);

  Index* index_;
  Manifest manifest_;
  std::vector<Slots> live_;
  std::vector<size_t> gone_;
  std::map<Index::BlockName, std::vector<Entry>> entries_read_;  // so far
};

}  // namespace tabella::search
