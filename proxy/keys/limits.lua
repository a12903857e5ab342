-- One gateway key's limits, in one step. ARGV[1] is JSON: what ended, what was used, what still
-- runs, what was spent according to the ledger, and maybe who wants to enter. The reply is a word
-- and, when the limits were looked at, the numbers behind it. The server's clock is the only one
-- that rates and leases know; the month and the day of a budget come with the question.
local requests, tokens, inside, reserved, spent, seen = unpack(KEYS)
local ask = cjson.decode(ARGV[1])
local MINUTE = 60
local BOOKS = 70 * 86400

local now = ask.now
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) + tonumber(time[2]) / 1e6
end

-- A window is a hash: for each second how much, and under l<second> when the last of it came.
-- After the clock stepped back, everything is as long ago as it was.
local function open(key)
  local flat, counts, total, newest = redis.call('HGETALL', key), {}, 0, now
  local last = {}
  for i = 1, #flat, 2 do
    local second = string.match(flat[i], '^l(.+)$')
    if second then
      last[second] = tonumber(flat[i + 1])
      newest = math.max(newest, last[second])
    end
  end
  local back = newest - now
  if back > 0 then redis.call('DEL', key) end
  for i = 1, #flat, 2 do
    local at = last[flat[i]]
    if at then
      local amount = tonumber(flat[i + 1])
      if at - back + MINUTE > now then
        table.insert(counts, {at - back, amount})
        total = total + amount
        if back > 0 then
          local second = string.format('%.0f', math.floor(at - back))
          redis.call('HINCRBY', key, second, amount)
          redis.call('HSET', key, 'l' .. second, string.format('%.6f', at - back))
        end
      else
        redis.call('HDEL', key, flat[i], 'l' .. flat[i])
      end
    end
  end
  table.sort(counts, function(a, b) return a[1] < b[1] end)
  return counts, total
end

local function add(key, amount)
  local second = string.format('%.0f', math.floor(now))
  redis.call('HINCRBY', key, second, amount)
  redis.call('HSET', key, 'l' .. second, string.format('%.6f', now))
  redis.call('EXPIRE', key, 2 * MINUTE)
end

-- The seconds until at most so much is left, if nothing is added.
local function wait(counts, total, most)
  local surplus, seconds = total - most, 0
  for _, count in ipairs(counts) do
    if surplus <= 0 then break end
    surplus = surplus - count[2]
    seconds = math.max(0, count[1] + MINUTE - now)
  end
  return seconds
end

-- A lease is a member id:tokens with the time at which it ends unless its process renews it.
local function drop(member)
  if redis.call('ZREM', inside, member) == 1 then
    redis.call('DECRBY', reserved, string.match(member, '%d+$'))
  end
end

local function hold(lease)
  local member = lease[1] .. ':' .. lease[2]
  if redis.call('ZADD', inside, now + ask.ttl, member) == 1 then
    redis.call('INCRBY', reserved, lease[2])
  end
  redis.call('EXPIRE', inside, 4 * ask.ttl)
  redis.call('EXPIRE', reserved, 4 * ask.ttl)
end

for _, member in ipairs(redis.call('ZRANGEBYSCORE', inside, '-inf', now)) do drop(member) end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', inside, now + ask.ttl, '+inf')) do
  redis.call('ZADD', inside, 'XX', now + ask.ttl, member)
end
for _, lease in ipairs(ask.left) do drop(lease[1] .. ':' .. lease[2]) end
for _, lease in ipairs(ask.running) do hold(lease) end

-- What was used is counted once, however often a process has to say it.
if ask.batch ~= '' and redis.call('SET', seen, 1, 'NX', 'EX', 10 * MINUTE) then
  if ask.tokens > 0 then add(tokens, ask.tokens) end
  for _, cost in ipairs(ask.costs) do
    redis.call('HINCRBY', spent, 'd' .. cost[1], cost[3])
    redis.call('HINCRBY', spent, 'm' .. cost[2], cost[3])
    redis.call('EXPIRE', spent, BOOKS)
  end
end

-- The ledger's sums fill in what this server has forgotten, and never take anything away.
if ask.ledger then
  for _, sum in ipairs(ask.ledger.sums) do
    if tonumber(redis.call('HGET', spent, sum[1]) or 0) < tonumber(sum[2]) then
      redis.call('HSET', spent, sum[1], sum[2])
    end
  end
  redis.call('HSET', spent, 'k' .. ask.ledger.month, 1)
  redis.call('EXPIRE', spent, BOOKS)
end

local want = ask.enter
if not want then return {'done'} end

local function sum(field) return tonumber(redis.call('HGET', spent, field) or 0) end

if want.budget_month or want.budget_day then
  if redis.call('HEXISTS', spent, 'k' .. want.month) == 0 then return {'unknown'} end
  if want.budget_month and sum('m' .. want.month) >= want.budget_month then return {'month'} end
  if want.budget_day and sum('d' .. want.day) >= want.budget_day then return {'day'} end
end

local asked, asked_total = open(requests)
local used, used_total = open(tokens)
local held = tonumber(redis.call('GET', reserved) or 0)
local verdict, seconds = 'in', 0
if redis.call('ZSCORE', inside, want.lease[1] .. ':' .. want.lease[2]) then
  verdict = 'in' -- this was said before, and the answer got lost
elseif want.concurrent and redis.call('ZCARD', inside) >= want.concurrent then
  verdict = 'inside'
elseif want.rpm and asked_total >= want.rpm then
  verdict, seconds = 'requests', wait(asked, asked_total, want.rpm - 1)
elseif want.tpm and (used_total + held >= want.tpm or used_total + held + want.lease[2] > want.tpm) then
  local room = math.max(0, want.tpm - held - math.max(1, want.lease[2]))
  verdict, seconds = 'tokens', math.max(1, wait(used, used_total, room))
else
  hold(want.lease)
  add(requests, 1)
  asked_total, held = asked_total + 1, held + want.lease[2]
  table.insert(asked, {now, 1})
end
return {
  verdict, string.format('%.3f', seconds),
  asked_total, string.format('%.3f', wait(asked, asked_total, 0)),
  used_total + held, string.format('%.3f', wait(used, used_total, 0)),
}
