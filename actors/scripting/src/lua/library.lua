-- What libraries see: while one is loaded, `redis.register_function` and little else; when its functions run, what scripts see.
--
-- A library's chunk has an environment of its own, an empty table whose reads fall through to either. Functions inherit it, so
-- the switch is one assignment. What a library has kept of the first (local r = redis) stays what it was.

local protect, globals, missing, locate, api = ...
local error, setmetatable, xpcall = error, setmetatable, xpcall

setmetatable(api, { __index = missing })
local loading = { redis = protect(api) }
loading.server = loading.redis
setmetatable(loading, { __index = missing })

local switch = { __index = globals, __metatable = false }
function switch.__newindex()
  error('Attempt to modify a readonly table', 2)
end
local environment = setmetatable({}, switch)

local function load(chunk)
  switch.__index = loading
  local succeeded, fault = xpcall(chunk, locate)
  switch.__index = globals
  return succeeded, fault
end

-- A load that ended in the middle (no memory) has left the switch where it was.
local function settle()
  switch.__index = globals
end

return environment, load, settle
