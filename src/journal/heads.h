// The heads of entities, and what else is kept about them: rows of a table of ours.
//
//   id     part         highest, deleted_to, purge_to, purged_to, epoch, time, tagged, …
//   J#P    head         the head of entity P in journal J
//   J#P    batch#ID     what an append with this batch id has answered: first, last
//   #work  stage#J#P    somebody is staging events of this entity
//   #work  purge#J#P    somebody is removing events of this entity
//   #journals  J        a journal that has events
//   #scan  TABLE        how far the table of events was looked through for those that were there before us
//
// The table has a stream with both images: events get their positions in the order of all (journal/order.h)
// from the heads as they move, of which each says by its old and its new number which events were appended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "journal/event.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::journal {

struct Head {
  uint64_t highest = 0;
  uint64_t deleted_to = 0;  // no event up to here is shown
  uint64_t purge_to = 0;    // no row up to here is to stay
  uint64_t purged_to = 0;   // no row up to here is left
  uint64_t epoch = 0;
  uint64_t expiring_to = 0;          // events up to here have a time to live, and may be gone
  std::optional<TimePoint> expires;  // when the last of them goes; later ones never go before
  TimePoint time;                    // of the last append
  bool tagged = false;               // some events of the last append have tags

  struct Staging {
    std::string owner;      // who holds the head: whoever stages, or whoever removes what another has staged
    std::string append_id;  // which the rows have
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t epoch = 0;
    std::string beat;  // changes while its owner is alive
  };
  std::optional<Staging> staging;
};

struct Batch {
  uint64_t first = 0;
  uint64_t last = 0;
};

struct NamedHead {
  Entity entity;
  Head head;
};

// Of a number that is not stored while it is 0.
inline store::Condition is_still(std::string_view name, uint64_t number) {
  return number > 0 ? store::equals(name, number) : store::absent(name);
}

// Thread-safe.
class Heads {
 public:
  Heads(store::Store& store, std::string table) : store_(store), table_(std::move(table)) {}
  static store::TablePlan plan(const std::string& table);

  const std::string& table() const { return table_; }
  static item::Item key_of(const Entity& entity);
  static item::Item batch_key(const Entity& entity, std::string_view batch_id);
  static item::Item batch_row(const Entity& entity, std::string_view batch_id, const Batch& batch,
                              TimePoint expires);
  enum class Work { stage, purge };
  static item::Item work_key(const Entity& entity, Work work);
  static Head head_of(item::ItemView row);
  // Of a row, or of its key; nothing if it is no head.
  static std::optional<Entity> entity_of(item::ItemView row);

  store::Async<std::optional<Head>> find(Entity entity) const;
  store::Async<std::optional<Batch>> find_batch(Entity entity, std::string batch_id) const;

  // Entities of a journal, in no order, page by page; `from` is empty at first, and `next` empty at the end.
  struct Page {
    std::vector<NamedHead> entities;
    std::string next;
  };
  static std::string next_after(const Entity& entity);  // the `next` of a page that ends with it
  store::Async<Page> list(std::string journal, size_t limit, std::string from) const;

  store::Async<std::vector<std::string>> journals() const;
  store::Async<void> add_journal(std::string journal) const;
  // Entities that somebody is at, or was when he died; each once.
  store::Async<std::vector<Entity>> unfinished_work() const;

 private:
  store::Store& store_;
  const std::string table_;
};

// That a head is at this number. One that nobody has moved yet may lack it.
store::Condition highest_is(uint64_t number);

}  // namespace tabella::journal
