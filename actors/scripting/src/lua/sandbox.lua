-- Builds what scripts see: a table of globals and the libraries behind it, none of which they can change.
--
-- A table that must not change is hidden behind an empty one whose reads fall through and whose writes are refused; what
-- would go round that (rawset, next, setmetatable, ...) is replaced by versions that know the hidden tables. The functions
-- below run with the true globals; scripts never see those.

local missing, repair, repair_table, guard, collector_set, libraries = ...
local error, type, next, pairs, tonumber = error, type, next, pairs, tonumber
local rawget, rawset, getmetatable, setmetatable = rawget, rawset, getmetatable, setmetatable
local pcall, xpcall, loadstring, collectgarbage, unpack = pcall, xpcall, loadstring, collectgarbage, unpack
local select = select
local concat, resume, find = table.concat, coroutine.resume, string.find

local READONLY = 'Attempt to modify a readonly table'
local hidden = {}

local function refuse()
  error(READONLY, 2)
end

local function protect(inside, seen_metatable)
  local outside = setmetatable({}, { __index = inside, __newindex = refuse, __metatable = seen_metatable or false })
  hidden[outside] = inside
  return outside
end

local globals = {}
for _, name in ipairs { 'assert', 'error', 'gcinfo', 'ipairs', 'rawequal', 'select', 'tonumber',
  'tostring', 'type', '_VERSION' } do
  globals[name] = _G[name]
end

-- Who changes how the collector works changes it for one run.
function globals.collectgarbage(option, argument)
  if option ~= nil and option ~= 'collect' and option ~= 'count' and option ~= 'step' then
    collector_set()
  end
  return collectgarbage(option, argument)
end

function globals.next(of, key)
  return next(hidden[of] or of, key)
end

function globals.pairs(of)
  if hidden[of] then
    return globals.next, of, nil
  end
  return pairs(of)
end

function globals.rawget(of, key)
  return rawget(hidden[of] or of, key)
end

function globals.rawset(of, key, value)
  if hidden[of] then
    error(READONLY, 0)
  end
  return rawset(of, key, value)
end

function globals.getmetatable(of)
  return getmetatable(of) or nil
end

function globals.setmetatable(of, metatable)
  if hidden[of] then
    error(READONLY, 0)
  end
  return setmetatable(of, metatable)
end

-- What the server's functions raise is no Lua value until it is caught.
local function settle(succeeded, ...)
  if succeeded then
    return true, ...
  end
  return false, repair(...)
end

-- Only pcall makes strings of errors of commands.
local function settle_table(succeeded, ...)
  if succeeded then
    return true, ...
  end
  return false, repair_table(...)
end

function globals.pcall(...)
  return settle(pcall(...))
end

function globals.xpcall(called, handler)
  return settle_table(xpcall(called, function(fault)
    return handler(repair_table(fault))
  end))
end

-- The collector rests while the parser works: in Lua 5.1 it could take what the parser still holds (CVE-2025-49844).
local function compile(text, name)
  if find(text, '\27', 1, true) == 1 then
    return nil, 'attempt to load a binary chunk'
  end
  collector_set()
  collectgarbage('stop')
  local chunk, fault = loadstring(text, name)
  collectgarbage('restart')
  return chunk, fault
end

function globals.loadstring(...)
  local text, name = ...
  if type(text) == 'number' then
    text = text .. ''
  elseif type(text) ~= 'string' then
    error("bad argument #1 to 'loadstring' (string expected, got " .. (select('#', ...) == 0 and 'no value' or type(text)) .. ')', 2)
  end
  return compile(text, name)
end

function globals.load(reader, name)
  if type(reader) ~= 'function' then
    error("bad argument #1 to 'load' (function expected, got " .. (reader == nil and 'no value' or type(reader)) .. ')', 2)
  end
  local parts, count = {}, 0
  local succeeded, fault = pcall(function()
    while true do
      local part = reader()
      if part == nil or part == '' then
        return
      end
      if type(part) ~= 'string' then
        error('reader function must return a string', 0)
      end
      count = count + 1
      parts[count] = part
    end
  end)
  if not succeeded then
    return nil, repair_table(fault)
  end
  return compile(concat(parts), name or '=(load)')
end

-- A range so wide that its length would not fit an int is no range (CVE-2025-46817); the stack has room for so many values, arguments
-- among them.
local VALUES_MAX = 8000
function globals.unpack(...)
  local of, first, last = ...
  local from, to = tonumber(first or 1), tonumber(last or type(of) == 'table' and #of or 0)
  if from and to and to - from >= VALUES_MAX - select('#', ...) then
    if to > 2147483647 or from < -2147483648 then
      return
    end
    error('too many results to unpack', 2)
  end
  return unpack(...)
end

local function copy(from)
  local to = {}
  for key, value in pairs(from) do
    to[key] = value
  end
  return to
end

local strings = copy(string)
local coroutines = copy(coroutine)
function coroutines.resume(...)
  return settle_table(resume(...))
end

-- Matching goes one step of the stack deeper for each part of the pattern, without a limit of its own.
local PATTERN_MAX = 4096
for _, name in ipairs { 'find', 'match', 'gmatch', 'gfind', 'gsub' } do
  local original = strings[name]
  strings[name] = function(text, pattern, third, plain, ...)
    if type(pattern) == 'string' and #pattern > PATTERN_MAX and not plain then
      error('pattern too complex', 2)
    end
    return original(text, pattern, third, plain, ...)
  end
end

local mathematics = copy(math)
mathematics.random, mathematics.randomseed = libraries.random, libraries.randomseed
libraries.random, libraries.randomseed = nil, nil

globals.string = protect(strings)
local tables = copy(table)
tables.insert = guard(tables.insert, hidden)
globals.table = protect(tables)
globals.math = protect(mathematics)
globals.coroutine = protect(coroutines)
for name, library in pairs(libraries) do
  globals[name] = protect(library)
end
globals.server = globals.redis

-- The strings' own methods.
local of_strings = getmetatable('')
of_strings.__index = strings
of_strings.__metatable = protect({ __index = globals.string })

setmetatable(globals, { __index = missing })
local outer = protect(globals, protect({ __index = missing }))
globals._G = outer

return outer, globals, protect
