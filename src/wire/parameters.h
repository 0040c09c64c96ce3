// The parameters that several operations share, read and written.
#pragma once

#include <string>

#include "store/requests.h"
#include "wire/reader.h"

namespace tabella::wire {

// Also where tables are the names of a map, as in the batches.
void check_table_name(std::string_view name, Problems& problems);

// TableName of the operations on items: wrong names are reported alone, before anything else.
std::string read_table_name(const Reader& reader);
// TableName of the operations on tables.
std::string read_required_table_name(const Reader& reader);
// A request that is nothing but that.
Result<std::string> read_table_only(JsonValue body);

store::CapacityDetail read_capacity_detail(const Reader& reader);
bool read_collection_metrics(const Reader& reader);
store::ReturnValues read_return_values(const Reader& reader);
bool read_return_on_failure(const Reader& reader);
store::ExpressionAttributes read_expression_attributes(const Reader& reader);
std::optional<store::Combine> read_conditional_operator(const Reader& reader);
std::optional<std::vector<std::string>> read_attributes_to_get(const Reader& reader);
// KeyConditions, QueryFilter, ScanFilter.
std::optional<std::vector<store::LegacyCondition>> read_conditions(const Reader& reader,
                                                                   std::string_view name);

// ClientRequestToken.
std::optional<std::string> read_token(const Reader& reader);

store::WriteOptions read_write_options(const Reader& reader);

// All of Query's and Scan's common parameters but Limit, which each words in its own way.
store::ReadOptions read_read_options(const Reader& reader, std::string_view filter_name);

void append_capacity(std::string& out, const store::ConsumedCapacity& capacity);
// [{"Item": …}, {}, …], the answers of transactions that read.
void append_responses(std::string& out, const std::vector<std::optional<store::Item>>& items);
void append_capacities(JsonObjectWriter& json, const std::vector<store::ConsumedCapacity>& capacities);
void append_table_metrics(
    JsonObjectWriter& json,
    const std::vector<std::pair<std::string, std::vector<store::ItemCollectionMetrics>>>& tables);
void append_metrics(std::string& out, const store::ItemCollectionMetrics& metrics);
void append_write_result(std::string& out, const store::WriteResult& result);
void append_page(std::string& out, const store::Page& page);

}  // namespace tabella::wire
