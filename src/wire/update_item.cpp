#include <array>

#include <fmt/format.h>

#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kActions = {
    {{"ADD", "ADD"}, {"PUT", "PUT"}, {"DELETE", "DELETE"}}};

std::optional<std::vector<store::LegacyUpdate>> read_updates(const Reader& reader) {
  const auto map = reader.map("AttributeUpdates", "AttributeValueUpdate");
  if (!map) return std::nullopt;
  std::vector<store::LegacyUpdate> updates;
  for (JsonElements e(*map); e.next();) {
    if (!is_structure(e.value(), "AttributeValueUpdate", reader.problems())) continue;
    const Reader entry(e.value(), reader.problems(), fmt::format("attributeUpdates.{}.member", e.key()));
    store::LegacyUpdate update{.attribute = std::string(e.key())};
    if (update.attribute.empty())
      reader.problems().late("One or more parameter values were invalid: Empty attribute name");
    if (update.attribute.size() > 65535)
      reader.problems().late(
          "One or more parameter values were invalid: Attribute name is too large, must be less than 65536 "
          "bytes");
    if (const auto action = entry.choice<std::string_view>("Action", kActions)) update.action = *action;
    if (const auto value = entry.structure("Value", "AttributeValue")) {
      std::string flat;
      if (auto read = item::read_value(flat, *value); read)
        update.value = std::move(flat);
      else
        reader.problems().add(std::move(read).error());
    }
    updates.push_back(std::move(update));
  }
  return updates;
}

Result<store::UpdateItemRequest> read_update_item(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::UpdateItemRequest request;
  request.table = read_table_name(reader);
  auto key = reader.item("Key");
  if (reader.require("Key", key)) request.key = std::move(*key);
  request.options = read_write_options(reader);
  request.update = reader.string("UpdateExpression");
  request.updates = read_updates(reader);
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

TABELLA_OPERATION(update_item) {
  return answer(read_update_item(body), context, &store::Store::update_item, out, append_write_result);
}

}  // namespace tabella::wire
