# Debian's ruby-redis, another parser of replies: the data types, pipelines, transactions, waiting, Pub/Sub and scripts.
require_relative "work"

Redis.silence_deprecations = true
R = Redis.new(port: PORT, db: 0)
R.flushall

test "strings" do
  equal "OK", R.set("a", "1", ex: 100)
  equal false, R.set("a", "2", nx: true)
  equal 42, R.incrby("a", 41)
  equal "42", R.getset("a", "\x00\xff\r\n".b)
  equal "\x00\xff\r\n".b, R.get("a").b
  R.mset("b", 1)
  equal ["1", nil], R.mget("b", "none")
  equal 1.5, R.incrbyfloat("f", 1.5)
  equal [0, true, false, 100], [R.setbit("bits", 1, 1), R.expire("b", 100), R.persist("none"), R.ttl("b")]
end

test "collections" do
  R.rpush("l", %w[a b c])
  equal %w[a b c], R.lrange("l", 0, -1)
  equal "c", R.rpoplpush("l", "m")
  R.mapped_hmset("h", "f" => "v", "g" => "1")
  equal({ "f" => "v", "g" => "1" }, R.hgetall("h"))
  equal 3, R.hincrby("h", "g", 2)
  R.sadd("s", %w[x y])
  equal %w[x y], R.smembers("s").sort
  R.zadd("z", [[1.5, "a"], [2, "b"], [Float::INFINITY, "c"]])
  equal [["a", 1.5], ["b", 2.0], ["c", Float::INFINITY]], R.zrange("z", 0, -1, with_scores: true)
  equal %w[b a], R.zrevrangebyscore("z", 2, "-inf")
  R.geoadd("g", 13.361389, 38.115556, "Palermo")
  equal 1, R.georadius("g", 15, 37, 200, "km").size
  R.pfadd("p", (1..100).to_a)
  equal true, (95..105).cover?(R.pfcount("p"))
end

test "streams" do
  id = R.xadd("st", { "f" => "v" })
  equal [[id, { "f" => "v" }]], R.xrange("st")
  R.xgroup(:create, "st", "group", "0")
  equal({ "st" => [[id, { "f" => "v" }]] }, R.xreadgroup("group", "me", "st", ">"))
  equal 1, R.xpending("st", "group")["size"]
  equal 1, R.xack("st", "group", id)
end

test "pipelines and transactions" do
  equal ["OK", 2, "2"], R.pipelined { |pipe| pipe.set("n", 1); pipe.incr("n"); pipe.get("n") }
  equal ["OK", 6], R.multi { |multi| multi.set("n", 5); multi.incr("n") }
  other = Redis.new(port: PORT)
  came = R.watch("n") { other.set("n", 0); R.multi { |multi| multi.incr("n") } }
  equal nil, came
  equal "0", R.get("n")
end

test "errors" do
  raises(Redis::CommandError, /\AWRONGTYPE /) { R.incr("l") }
  raises(Redis::CommandError, /unknown command/) { R.call("NOSUCH") }
end

test "waiting" do
  waiting = Thread.new { Redis.new(port: PORT).blpop("queue", timeout: 5) }
  sleep 0.2
  R.rpush("queue", "x")
  equal %w[queue x], waiting.value
  equal nil, R.brpop("none", timeout: 0.1)
end

test "Pub/Sub" do
  heard = []
  listening = Thread.new do
    own = Redis.new(port: PORT)
    own.subscribe("one", "two") do |on|
      on.subscribe { |_, count| Thread.current[:ready] = count == 2 }
      on.message do |channel, text|
        heard << [channel, text]
        own.unsubscribe if text == "end"
      end
    end
  end
  wait_until { listening[:ready] }
  equal 1, R.publish("one", "first")
  R.publish("two", "end")
  listening.join
  equal [%w[one first], %w[two end]], heard
end

test "scripts" do
  source = "return {KEYS[1], ARGV[1], redis.call('incr', KEYS[1]), false}"
  equal ["counter", "x", 1, nil], R.eval(source, keys: ["counter"], argv: ["x"])
  sha = R.script(:load, source)
  equal [true, false], R.script(:exists, [sha, "0" * 40])
  equal ["counter", "y", 2, nil], R.evalsha(sha, ["counter"], ["y"])
  raises(Redis::CommandError, /NOSCRIPT/) { R.evalsha("0" * 40) }
end

test "scans" do
  R.mapped_mset((1..200).to_h { |n| ["key:#{n}", n] })
  equal 200, R.scan_each(match: "key:*", count: 20).to_a.uniq.size
  R.hset("big", (1..600).to_h { |n| ["f#{n}", n] })
  equal 600, R.hscan_each("big").to_a.uniq.size
end

test "the server tells of itself" do
  raise "no version" unless R.info["redis_version"]
  equal "noeviction", R.config(:get, "maxmemory-policy")["maxmemory-policy"]
  equal PORT.to_s, R.client(:list).first["laddr"].split(":").last
  equal "PONG", R.ping
end

finish
