// The index's table: a manifest, the segments it names, the documents' texts, and what has happened to
// documents since they were indexed. The only place that knows the table's attribute names.
//
//   part (key)          name (key)
//   manifest            manifest           version, nonce, body
//   segment|<id>        d | t<n> | e<n>    body: directory, terms, entries
//   document|<id>       0, 1, …            body: the pieces of text, to look again whether they match;
//                                          more: how many rows follow the first
//   gone                <id>               a document that was deleted after it was indexed, or that its
//                                          owner has not got any more
//   late                <id>               a document that its owner got when the index was past it, to be
//                                          taken in afterwards
//   label|<name>        <id>               a document that has the label
//   labels              <name>             a label that there is
//
// All rows but the manifest have `expires`, and go by time to live with what they are about.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "search/document.h"
#include "search/manifest.h"
#include "search/pace.h"
#include "search/segment.h"
#include "search/verified.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::search {

// Thread-safe.
class Index {
 public:
  Index(store::Store& store, std::string table) : store_(store), table_(std::move(table)) {}

  static store::TablePlan plan(const std::string& table);

  store::Async<Manifest> manifest();
  // Replaces the manifest that `next` was made from. False if somebody else was faster.
  store::Async<bool> commit(Manifest next);

  // Writes the rows of a segment; it is part of the index once a manifest names it.
  store::Async<SegmentInfo> write_segment(SegmentBlocks blocks, std::vector<Entry> entries);
  store::Async<void> remove_segment(SegmentInfo segment);
  store::Async<std::shared_ptr<const Directory>> directory(const SegmentInfo& segment);
  // Blocks by segment and name. Once no manifest names a segment its blocks may be gone: resource_not_found.
  using BlockName = std::pair<std::string, std::string>;
  store::Async<std::map<BlockName, std::string>> blocks(std::vector<BlockName> names);
  static std::string term_block(size_t number) { return "t" + std::to_string(number); }
  static std::string entry_block(size_t number) { return "e" + std::to_string(number); }
  // All entries of a segment, in order.
  store::Async<std::vector<Entry>> entries(SegmentInfo segment);

  store::Async<void> put_documents(const std::vector<Document>& documents);
  // Shows the texts of those that are there, as they are kept: has_text() looks into them.
  using Look = std::function<void(const std::string& id, std::string_view texts)>;
  store::Async<void> look_at_documents(const std::vector<std::string>& ids, const Look& look, Pace& pace);
  // What was found out by that.
  Verified& verified() { return verified_; }
  // `large`: those that may take more than one row.
  store::Async<void> remove_documents(const std::vector<std::string>& ids,
                                      const std::vector<std::string>& large);

  store::Async<void> add_gone(
      const std::vector<std::pair<std::string, int64_t>>& ids);  // and when they expire
  store::Async<std::vector<std::string>> gone();                 // in order
  store::Async<bool> is_gone(const std::string& id);
  store::Async<void> remove_gone(const std::vector<std::string>& ids);

  store::Async<void> add_late(const std::string& id);
  store::Async<std::vector<std::string>> late(size_t most);  // the first of them, in order
  store::Async<void> remove_late(const std::vector<std::string>& ids);

  store::Async<void> add_label(std::string label, std::string id, int64_t expires);
  store::Async<void> remove_label(std::string label, std::string id);
  store::Async<std::vector<std::string>> labelled(const std::string& label);  // ids, in order
  // Those that have not expired at `now`, in seconds; all, if it is not given.
  store::Async<std::vector<std::string>> labels(int64_t now = 0);

  // Removes every row but the manifest, whatever it is; `removed` hears how many are gone so far.
  store::Async<void> remove_all_rows(const std::function<void(size_t)>& removed);

 private:
  store::Query rows_of(const std::string& part, int64_t at_once) const;
  store::Async<std::vector<std::string>> names_in(std::string part, int64_t now = 0);
  store::Async<void> remove_names(const std::string& part, const std::vector<std::string>& names);

  static constexpr size_t kMostVerified = 16u << 20;

  store::Store& store_;
  const std::string table_;
  Verified verified_{kMostVerified};
  std::mutex mutex_;
  // Guarded by mutex_. Segments never change, so their directories can be kept; only so many are.
  std::unordered_map<std::string, std::shared_ptr<const Directory>> directories_;
  std::deque<std::string> kept_;
};

}  // namespace tabella::search
