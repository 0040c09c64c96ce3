-- wrk's side of ./bench engine: one DynamoDB operation, on keys that change from request to request.
-- Arguments: the operation's name, the number of keys, and for GetRecords the iterator.
local operation, keys, iterator

local item = '{"pk":{"S":"item-%07d"},"title":{"S":"A title of moderate length"},"count":{"N":"%d"},"body":{"S":"' .. string.rep("x", 230) .. '"}}'

local templates = {
  GetItem = { "GetItem", '{"TableName":"bench","Key":{"pk":{"S":"item-%07d"}}}' },
  PutItem = { "PutItem", '{"TableName":"bench","Item":' .. item .. '}' },
  PutItemStreamed = { "PutItem", '{"TableName":"streamed","Item":' .. item .. '}' },
  PutItemMortal = { "PutItem", '{"TableName":"mortal","Item":' .. item .. '}' },
  UpdateItem = { "UpdateItem",
    '{"TableName":"bench","Key":{"pk":{"S":"item-%07d"}},"UpdateExpression":"SET first_seen = if_not_exists(first_seen, :t) ADD visits :one","ExpressionAttributeValues":{":t":{"N":"1700000000"},":one":{"N":"1"}}}' },
  HotCounter = { "UpdateItem",
    '{"TableName":"bench","Key":{"pk":{"S":"counter"}},"UpdateExpression":"ADD visits :one","ExpressionAttributeValues":{":one":{"N":"1"}}}' },
  Query = { "Query",
    '{"TableName":"events","KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"stream-%05d"}},"ScanIndexForward":false,"Limit":10}' },
  ExecuteStatement = { "ExecuteStatement",
    '{"Statement":"SELECT * FROM bench WHERE pk = ?","Parameters":[{"S":"item-%07d"}]}' },
  TransactWriteItems = { "TransactWriteItems", "" },
  GetRecords = { "GetRecords", "" },
}

local function put(n)
  return '{"Put":{"TableName":"bench","Item":' .. string.format(item, n, math.random(1000000000)) .. '}}'
end

-- Four items, no two the same.
local function transaction()
  local n = math.random(0, keys - 1)
  local step = math.floor(keys / 4)
  return '{"TransactItems":[' .. put(n) .. "," .. put((n + step) % keys) .. "," .. put((n + 2 * step) % keys) .. "," .. put((n + 3 * step) % keys) .. "]}"
end

function init(args)
  operation = templates[args[1]]
  keys = tonumber(args[2])
  iterator = args[3]
  math.randomseed(os.time())
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/x-amz-json-1.0"
  local service = operation[1] == "GetRecords" and "DynamoDBStreams" or "DynamoDB"
  wrk.headers["X-Amz-Target"] = service .. "_20120810." .. operation[1]
  wrk.headers["X-Amz-Date"] = "20260101T000000Z"
  wrk.headers["Authorization"] =
    "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0"
end

function request()
  if iterator then return wrk.format(nil, "/", nil, '{"ShardIterator":"' .. iterator .. '"}') end
  if operation[1] == "TransactWriteItems" then return wrk.format(nil, "/", nil, transaction()) end
  return wrk.format(nil, "/", nil, string.format(operation[2], math.random(0, keys - 1), math.random(1000000000)))
end
