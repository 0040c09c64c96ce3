// JSON of what stands in requests and in answers alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "store/requests.h"

namespace tabella::protocol {

void append_keys(std::string& out, const std::vector<store::KeyElement>& keys);
void append_attributes(std::string& out, const std::vector<store::AttributeDefinition>& attributes);
void append_projection(std::string& out, const store::IndexDefinition& index);
void append_tags(std::string& out, const std::vector<store::Tag>& tags);
void append_strings(std::string& out, const std::vector<std::string>& strings);

// OnDemandThroughput, if there is one.
void write_on_demand(JsonObjectWriter& json, const std::optional<store::OptionalThroughput>& maxima);
void write_time_to_live(JsonObjectWriter& json, const store::UpdateTimeToLiveRequest& specification);

// RequestItems and UnprocessedItems of BatchWriteItem, RequestItems and UnprocessedKeys of BatchGetItem.
void append_batch(std::string& out,
                  const std::vector<std::pair<std::string, std::vector<store::BatchWrite>>>& tables);
void append_batch(std::string& out, const std::vector<store::BatchGetTable>& tables);

// ExpressionAttributeNames and -Values.
void write_expression_attributes(JsonObjectWriter& json, const store::ExpressionAttributes& attributes);

}  // namespace tabella::protocol
