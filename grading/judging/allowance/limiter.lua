-- The judge's allowance as one hash in Redis, on Redis' clock: a bucket for each dimension that the provider limits.
-- KEYS[1] the judge; ARGV[1] reserve | settle | hold | ramp | state; ARGV[2] its arguments; ARGV[3] the constants.
local key, args, const = KEYS[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1e6

local hash, changed = {}, {}
local flat = redis.call('HGETALL', key)
for i = 1, #flat, 2 do hash[flat[i]] = flat[i + 1] end

local function get(field, default) return tonumber(hash[field]) or default end

local function put(field, value)
  hash[field] = type(value) == 'number' and string.format('%.17g', value) or value
  changed[field] = true
end

local function save()
  local words = {}
  for field in pairs(changed) do
    words[#words + 1] = field
    words[#words + 1] = hash[field]
  end
  if #words == 0 then return end
  redis.call('HSET', key, unpack(words))
  redis.call('EXPIRE', key, const.keep_seconds)
end

-- Until an answer has told the limit, a few requests per minute are allowed.
local function limit_of(name) return get(name .. ':limit', name == 'requests' and const.first or nil) end

-- The share of the rate that may be used at a time: it climbs for 60 s after an outage.
local function share_at(time)
  local climbed = time - get('ramp', -60)
  return climbed >= 60 and 1 or const.ramp_from + (1 - const.ramp_from) * climbed / 60
end

-- The time since the climb began, in seconds at full rate: the integral of share_at.
local function full_rate_seconds(time)
  local climbed = time - get('ramp', -60)
  local climbing = math.min(climbed, 60)
  return const.ramp_from * climbing + (1 - const.ramp_from) * climbing ^ 2 / 120 + math.max(0, climbed - 60)
end

local share = share_at(now)
local function rate_of(name) return const.pace * limit_of(name) / 60 end
local function room_of(name) return const.burst * limit_of(name) * share end
local function level_of(name) return math.min(room_of(name), get(name .. ':level', room_of(name))) end

-- A level is at least minus one minute's limit, so that a wrong count cannot stop the judge for longer than that.
local function set_level(name, level)
  put(name .. ':level', math.max(-limit_of(name), math.min(room_of(name), level)))
end

local function refill()
  local seconds = math.max(0, full_rate_seconds(now) - full_rate_seconds(get('at', now)))
  for _, name in ipairs(const.dimensions) do
    if limit_of(name) then set_level(name, get(name .. ':level', room_of(name)) + seconds * rate_of(name)) end
  end
  put('at', now)
end

-- What the job at the head of the line waits for is kept for it: other jobs with the same or a larger `spare` wait.
local function is_behind_another()
  local is_taken = (hash.head or '') ~= '' and get('head_until', 0) > now
  return is_taken and hash.head ~= args.who and args.spare >= get('head_spare', 0)
end

local function kept_for_head(name)
  return is_behind_another() and math.min(get('head:' .. name, 0), room_of(name)) or 0
end

local function seconds_until_there_is_room()
  local wait = math.max(0, get('hold', 0) - now)
  for _, name in ipairs(const.dimensions) do
    if limit_of(name) then
      local spare = args.spare * limit_of(name) * share
      -- A cost that is larger than the bucket is granted when the bucket is full.
      local needed = math.min(args.cost[name] + spare, room_of(name)) + kept_for_head(name)
      wait = math.max(wait, (needed - level_of(name)) / (rate_of(name) * share))
    end
  end
  return wait
end

local function stand_at_head(wait)
  if args.who == '' or is_behind_another() then return end
  put('head', args.who)
  put('head_until', now + math.min(wait, 120) + const.head_seconds)
  put('head_spare', args.spare)
  for _, name in ipairs(const.dimensions) do put('head:' .. name, args.cost[name]) end
end

local function reserve()
  refill()
  local wait = seconds_until_there_is_room()
  if wait > const.longest_wait then
    stand_at_head(wait)
    -- The first answer will tell the limit, and it comes sooner than the wait by the assumed limit.
    if not hash['requests:limit'] then wait = math.max(get('hold', 0) - now, math.min(wait, const.first_wait)) end
    return { wait = wait, granted = false }
  end
  local marks = {}
  for _, name in ipairs(const.dimensions) do
    if limit_of(name) then set_level(name, level_of(name) - args.cost[name]) end
    put(name .. ':total', get(name .. ':total', 0) + args.cost[name])
    marks[name] = get(name .. ':total')
  end
  if hash.head == args.who then put('head', '') end
  return { wait = wait, granted = true, at = now + wait, marks = marks }
end

local function used_beyond(name) return (args.used and args.used[name] or 0) - args.cost[name] end

-- What was reserved and not used goes back; what was used beyond it is charged.
local function correct()
  for _, name in ipairs(const.dimensions) do
    if limit_of(name) then set_level(name, level_of(name) - used_beyond(name)) end
    put(name .. ':total', get(name .. ':total', 0) + used_beyond(name))
  end
end

-- Updates the estimates (tokens per character of a prompt, tokens of an answer) from sums that forget old answers.
local function calibrate()
  put('answers', const.memory * get('answers', 1) + 1)
  local read = math.min(args.used.input_tokens, const.highest_ratio * args.characters)
  local written = math.min(args.used.output_tokens, const.highest_output)
  put('outputs', const.memory * get('outputs', const.output) + written)
  put('tokens', const.memory * get('tokens', const.characters * const.ratio) + read)
  put('characters', const.memory * get('characters', const.characters) + args.characters)
end

local function count()
  local minute = math.floor(now / 60)
  local passed = minute - get('minute', minute)
  for _, name in ipairs(const.dimensions) do
    local this, last = get(name .. ':this', 0), get(name .. ':last', 0)
    if passed > 0 then this, last = 0, passed == 1 and this or 0 end
    put(name .. ':this', this + args.used[name])
    put(name .. ':last', last)
  end
  put('minute', minute)
end

-- Takes over the provider's limit. What remains of it, by the provider's answer, may only lower the level. The answer
-- may not know yet what was reserved since this call began, so that is subtracted, less what was refilled since.
local function learn(name, limit, remaining)
  local is_new = not hash[name .. ':limit']
  put(name .. ':limit', limit)
  local level = is_new and room_of(name) or level_of(name)
  if remaining then
    local since = args.marks and get(name .. ':total', 0) - used_beyond(name) - args.marks[name] or 0
    local refilled = args.marks and limit / 60 * math.max(0, now - args.at) or 0
    local unseen = math.max(0, since - refilled)
    level = math.min(level, remaining - (1 - const.burst) * limit - unseen)
  end
  set_level(name, level)
end

local function settle()
  refill()
  if args.marks then correct() end
  if args.used then count() end
  local is_counted = args.used and args.characters > 0
  if is_counted then calibrate() end
  for name, header in pairs(args.limits) do learn(name, header.limit, header.remaining) end
  -- A provider whose answer has no limits tells none: assume one.
  if is_counted and not hash['requests:limit'] then learn('requests', const.silent) end
  return {}
end

local function hold()
  put('hold', math.max(get('hold', 0), now + args.seconds))
  return {}
end

local function ramp()
  refill()
  put('ramp', now)
  share = const.ramp_from
  refill()
  return {}
end

local function used(name)
  local passed = math.floor(now / 60) - get('minute', 0)
  local fresh = 1 - now % 60 / 60
  if passed == 0 then return get(name .. ':this', 0) + get(name .. ':last', 0) * fresh end
  return passed == 1 and get(name .. ':this', 0) * fresh or 0
end

local function state()
  refill()
  changed = {}
  local dimensions = {}
  for _, name in ipairs(const.dimensions) do
    dimensions[name] = { used = used(name), limit = get(name .. ':limit'), level = limit_of(name) and level_of(name) }
  end
  return {
    dimensions = dimensions,
    hold = math.max(0, get('hold', 0) - now),
    share = share,
    ratio = get('tokens', const.ratio) / get('characters', 1),
    output = get('outputs', const.output) / get('answers', 1),
  }
end

local answer = ({ reserve = reserve, settle = settle, hold = hold, ramp = ramp, state = state })[ARGV[1]]()
save()
return cjson.encode(answer)
