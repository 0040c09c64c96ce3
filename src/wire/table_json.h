// Tables in JSON: the parts of CreateTable and UpdateTable that read them, and TableDescription.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/requests.h"
#include "wire/reader.h"

namespace tabella::wire {

std::vector<store::AttributeDefinition> read_attribute_definitions(const Reader& reader, bool required);
std::vector<store::KeyElement> read_key_schema(const Reader& reader, size_t most);
// One element of GlobalSecondaryIndexes or LocalSecondaryIndexes, or the Create of an update.
store::IndexDefinition read_index(const Reader& reader, bool global);
std::optional<store::Throughput> read_throughput(const Reader& reader);
std::optional<store::OptionalThroughput> read_on_demand(const Reader& reader);
std::optional<store::OptionalThroughput> read_warm(const Reader& reader);
std::optional<store::BillingMode> read_billing_mode(const Reader& reader);
std::optional<store::TableClass> read_table_class(const Reader& reader);
std::optional<store::ServerSideEncryption> read_encryption(const Reader& reader);
std::vector<store::Tag> read_tags(const Reader& reader);
std::optional<store::UpdateTableRequest::Stream> read_stream(const Reader& reader);

void append_description(std::string& out, const store::TableDescription& table);
// {"TableDescription": …}, the answer of what makes, changes or drops a table.
void append_changed_table(std::string& out, const store::TableDescription& table);

}  // namespace tabella::wire
