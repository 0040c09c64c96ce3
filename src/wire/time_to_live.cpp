// UpdateTimeToLive and DescribeTimeToLive.
#include "protocol/names.h"
#include "protocol/shapes.h"
#include "wire/answer.h"
#include "wire/parameters.h"

namespace tabella::wire {
namespace {

Result<store::UpdateTimeToLiveRequest> read_update_time_to_live(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::UpdateTimeToLiveRequest request{.table = read_required_table_name(reader)};
  const auto json = reader.structure("TimeToLiveSpecification", "TimeToLiveSpecification");
  if (reader.require("TimeToLiveSpecification", json)) {
    const Reader inner(*json, problems, reader.path_of("TimeToLiveSpecification"));
    const auto attribute = inner.string("AttributeName");
    inner.require("AttributeName", attribute);
    inner.length("AttributeName", attribute, 1, 255);
    const auto enabled = inner.boolean("Enabled");
    inner.require("Enabled", enabled);
    request.attribute = attribute.value_or("");
    request.enabled = enabled.value_or(false);
  }
  TABELLA_TRY(problems.result());
  return request;
}

void append_specification(std::string& out, const store::UpdateTimeToLiveRequest& specification) {
  JsonObjectWriter json(out);
  protocol::write_time_to_live(json, specification);
}

void append_time_to_live(std::string& out, const store::TimeToLiveDescription& description) {
  JsonObjectWriter json(out);
  JsonObjectWriter inner(json.key("TimeToLiveDescription"));
  inner.string("TimeToLiveStatus", protocol::name_of(protocol::kTimeToLiveStatuses, description.status));
  if (description.attribute) inner.string("AttributeName", *description.attribute);
}

}  // namespace

TABELLA_OPERATION(update_time_to_live) {
  return answer(read_update_time_to_live(body), context, &store::Store::update_time_to_live, out,
                append_specification);
}

TABELLA_OPERATION(describe_time_to_live) {
  return answer(read_table_only(body), context, &store::Store::describe_time_to_live, out,
                append_time_to_live);
}

}  // namespace tabella::wire
