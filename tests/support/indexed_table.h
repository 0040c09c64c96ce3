// A table with an index and a stream: everything that a change has to keep together.
#pragma once

#include "store/requests.h"

namespace tabella::test {

inline store::CreateTableRequest indexed_table() {
  store::CreateTableRequest request;
  auto& d = request.definition;
  d.name = "items";
  d.billing_mode = store::BillingMode::pay_per_request;
  d.attributes = {{"pk", item::Type::S}, {"g", item::Type::S}};
  d.key_schema = {{"pk", store::KeyRole::hash}};
  store::IndexDefinition index{.name = "by_g", .projection = store::ProjectionType::all};
  index.key_schema = {{"g", store::KeyRole::hash}};
  d.global_indexes = {index};
  d.stream = store::StreamView::new_and_old_images;
  return request;
}

}  // namespace tabella::test
