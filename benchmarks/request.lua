-- wrk's side of ./bench engine: one DynamoDB operation, on keys that change from request to request.
-- Arguments: the operation's name, the number of keys.
local operation, keys

local templates = {
  GetItem = { "GetItem", '{"TableName":"bench","Key":{"pk":{"S":"item-%07d"}}}' },
  PutItem = { "PutItem",
    '{"TableName":"bench","Item":{"pk":{"S":"item-%07d"},"title":{"S":"A title of moderate length"},"count":{"N":"42"},"body":{"S":"' .. string.rep("x", 230) .. '"}}}' },
  UpdateItem = { "UpdateItem",
    '{"TableName":"bench","Key":{"pk":{"S":"item-%07d"}},"UpdateExpression":"SET first_seen = if_not_exists(first_seen, :t) ADD visits :one","ExpressionAttributeValues":{":t":{"N":"1700000000"},":one":{"N":"1"}}}' },
  HotCounter = { "UpdateItem",
    '{"TableName":"bench","Key":{"pk":{"S":"counter"}},"UpdateExpression":"ADD visits :one","ExpressionAttributeValues":{":one":{"N":"1"}}}' },
  Query = { "Query",
    '{"TableName":"events","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"stream-%05d"}},"ScanIndexForward":false,"Limit":10}' },
}

function init(args)
  operation = templates[args[1]]
  keys = tonumber(args[2])
  math.randomseed(os.time())
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/x-amz-json-1.0"
  wrk.headers["X-Amz-Target"] = "DynamoDB_20120810." .. operation[1]
  wrk.headers["X-Amz-Date"] = "20260101T000000Z"
  wrk.headers["Authorization"] =
    "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0"
end

function request()
  return wrk.format(nil, "/", nil, string.format(operation[2], math.random(0, keys - 1)))
end
