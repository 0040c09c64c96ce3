// PartiQL statements about rows, with their values as parameters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "item/value.h"
#include "store/rows.h"
#include "store/statements.h"

namespace tabella::outbox {

// A statement's text with a "?" for each value.
class StatementBuilder {
 public:
  explicit StatementBuilder(std::string text) : text_(std::move(text)) {}

  template <class Self>
  Self&& with(this Self&& self, store::ValueRef value) {
    value.append_to(self.parameters_.emplace_back());
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& with(this Self&& self, item::ValueView value) {
    self.parameters_.emplace_back(value.bytes());
    return std::forward<Self>(self);
  }
  template <class Self>
  Self&& append(this Self&& self, std::string_view text) {
    self.text_ += text;
    return std::forward<Self>(self);
  }
  operator store::Statement() && {  // NOLINT: a statement in the making
    return {.text = std::move(text_), .parameters = std::move(parameters_)};
  }

 private:
  std::string text_;
  std::vector<std::string> parameters_;
};

// Fails where there is such an item.
inline store::Statement insert_into(const std::string& table, const item::Item& item) {
  StatementBuilder insert("INSERT INTO \"" + table + "\" VALUE {");
  bool first = true;
  for (item::Attributes each(item); each.next(); first = false) {
    if (!first) insert.append(", ");
    insert.append("'").append(each.name()).append("': ?").with(each.value());
  }
  insert.append("}");
  return std::move(insert);
}

}  // namespace tabella::outbox
