// DynamoDB as simply as it can be said: a map of rows, a list of what changed. What the engine answers is
// compared with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "item/value.h"

namespace tabella::model {

// An item of the test: its key, and a few attributes that may be there.
struct Row {
  std::string pk;
  std::string sk;
  std::optional<int64_t> n;
  std::optional<std::string> s;
  std::optional<std::string> g;
  std::optional<std::vector<int64_t>> l;
  std::optional<int64_t> ttl;
  bool operator==(const Row&) const = default;
};

item::Item to_item(const Row& row);
Row to_row(item::ItemView item);
item::Item to_key(const Row& row);
std::string show(const std::optional<Row>& row);

// A condition, as text for the engine and as a question for the model.
struct Condition {
  enum class Kind { none, absent, present, n_less, g_is };
  Kind kind = Kind::none;
  int64_t n = 0;
  std::string g;

  bool holds(const std::optional<Row>& row) const;
  std::string text() const;
};

// A change of an existing or new row.
struct Change {
  enum class Kind { put, set, add, append, forget, remove, check };
  Kind kind = Kind::put;
  Row row;  // its key, and for a put all of it
  int64_t n = 0;
  std::string text;
  int64_t ttl = 0;
  Condition condition;

  // The row after the change; nothing: it is gone or was never there.
  std::optional<Row> applied(const std::optional<Row>& old) const;
};

struct Record {
  std::optional<Row> old;
  std::optional<Row> now;
  bool by_service = false;
  bool operator==(const Record&) const = default;
};

class Model {
 public:
  using Key = std::pair<std::string, std::string>;

  static Key key_of(const Row& row) { return {row.pk, row.sk}; }
  std::optional<Row> get(const Key& key) const;
  // False, and nothing done, if its condition does not hold.
  bool apply(const Change& change);
  bool can_apply(const Change& change) const { return change.condition.holds(get(key_of(change.row))); }
  // Everything whose time has come.
  void expire(int64_t now);

  std::vector<Row> partition(const std::string& pk) const;
  std::vector<Row> all() const;
  std::vector<Row> in_group(
      const std::string& g) const;  // those with n, which is the index's sort key, in its order

  const std::map<Key, std::vector<Record>>& records() const { return records_; }

 private:
  void replace(const Key& key, std::optional<Row> now, bool by_service);

  std::map<Key, Row> rows_;
  std::map<Key, std::vector<Record>> records_;
};

}  // namespace tabella::model
