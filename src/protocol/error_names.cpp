#include "protocol/error_names.h"

#include <array>

namespace tabella::protocol {
namespace {

using store::ErrorCode;

constexpr std::string_view kValidate = "com.amazon.coral.validate#";
constexpr std::string_view kService = "com.amazon.coral.service#";
constexpr std::string_view kDynamo = "com.amazonaws.dynamodb.v20120810#";

struct Named {
  ErrorCode code;
  std::string_view origin;
  std::string_view name;
};

// The first of a code is the one it is written as.
constexpr auto kNames = std::to_array<Named>({
    {ErrorCode::validation, kValidate, "ValidationException"},
    {ErrorCode::validation, kService, "SerializationException"},
    {ErrorCode::resource_not_found, kDynamo, "ResourceNotFoundException"},
    {ErrorCode::resource_not_found, kDynamo, "TableNotFoundException"},
    {ErrorCode::resource_in_use, kDynamo, "ResourceInUseException"},
    {ErrorCode::resource_in_use, kDynamo, "TableAlreadyExistsException"},
    {ErrorCode::conditional_check_failed, kDynamo, "ConditionalCheckFailedException"},
    {ErrorCode::limit_exceeded, kDynamo, "LimitExceededException"},
    {ErrorCode::limit_exceeded, kDynamo, "ItemCollectionSizeLimitExceededException"},
    {ErrorCode::transaction_canceled, kDynamo, "TransactionCanceledException"},
    {ErrorCode::transaction_conflict, kDynamo, "TransactionConflictException"},
    {ErrorCode::idempotent_parameter_mismatch, kDynamo, "IdempotentParameterMismatchException"},
    {ErrorCode::duplicate_item, kDynamo, "DuplicateItemException"},
    {ErrorCode::trimmed_data_access, kDynamo, "TrimmedDataAccessException"},
    {ErrorCode::expired_iterator, kDynamo, "ExpiredIteratorException"},
    {ErrorCode::access_denied, kService, "AccessDeniedException"},
    {ErrorCode::unauthenticated, kService, "UnrecognizedClientException"},
    {ErrorCode::unauthenticated, kService, "InvalidSignatureException"},
    {ErrorCode::unauthenticated, kService, "IncompleteSignatureException"},
    {ErrorCode::unauthenticated, kService, "MissingAuthenticationTokenException"},
    {ErrorCode::unauthenticated, kService, "ExpiredTokenException"},
    {ErrorCode::throttled, kDynamo, "ProvisionedThroughputExceededException"},
    {ErrorCode::throttled, kDynamo, "RequestLimitExceeded"},
    {ErrorCode::throttled, kService, "ThrottlingException"},
    {ErrorCode::throttled, kService, "Throttling"},
    {ErrorCode::internal, kDynamo, "InternalServerError"},
    {ErrorCode::internal, kService, "InternalFailure"},
    {ErrorCode::unavailable, kService, "ServiceUnavailable"},
    {ErrorCode::unavailable, kService, "ServiceUnavailableException"},
});

struct StatementName {
  ErrorCode code;
  std::string_view name;
};

constexpr auto kStatementNames = std::to_array<StatementName>({
    {ErrorCode::conditional_check_failed, "ConditionalCheckFailed"},
    {ErrorCode::duplicate_item, "DuplicateItem"},
    {ErrorCode::resource_not_found, "ResourceNotFound"},
    {ErrorCode::access_denied, "AccessDenied"},
    {ErrorCode::throttled, "ProvisionedThroughputExceeded"},
    {ErrorCode::throttled, "ThrottlingError"},
    {ErrorCode::throttled, "RequestLimitExceeded"},
    {ErrorCode::transaction_conflict, "TransactionConflict"},
    {ErrorCode::internal, "InternalServerError"},
    {ErrorCode::validation, "ValidationError"},
});

}  // namespace

std::string error_type(ErrorCode code) {
  for (const auto& named : kNames)
    if (named.code == code) return std::string(named.origin).append(named.name);
  return {};
}

std::string_view short_name(std::string_view type) {
  const auto hash = type.rfind('#');
  return hash == std::string_view::npos ? type : type.substr(hash + 1);
}

std::optional<ErrorCode> error_code(std::string_view type) {
  for (const auto& named : kNames)
    if (named.name == short_name(type)) return named.code;
  return std::nullopt;
}

std::string_view statement_error(ErrorCode code) {
  for (const auto& named : kStatementNames)
    if (named.code == code) return named.name;
  return "ValidationError";
}

ErrorCode statement_error_code(std::string_view name) {
  for (const auto& named : kStatementNames)
    if (named.name == name) return named.code;
  return ErrorCode::validation;
}

}  // namespace tabella::protocol
