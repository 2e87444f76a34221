# The jobs that Sidekiq's processes run for sidekiq.rb.
require "sidekiq"
require_relative "work"

URL = "redis://127.0.0.1:#{PORT}"
Redis.silence_deprecations = true
# The schedule is looked at each second, and from the start.
Sidekiq.options[:poll_interval_average] = 1
Sidekiq.configure_server { |config| config.redis = { url: "#{URL}/0" } }
Sidekiq.configure_client { |config| config.redis = { url: "#{URL}/0" } }
STORE = Redis.new(port: PORT, db: 2)

class Note
  include Sidekiq::Job
  sidekiq_options queue: "default"

  def perform(key, value)
    STORE.rpush(key, value)
  end
end

class Urgent < Note
  sidekiq_options queue: "critical"
end

class SucceedAtThird
  include Sidekiq::Job
  sidekiq_options retry: 5

  def perform(key)
    raise "not yet" if STORE.incr(key) < 3
  end
end

class Die
  include Sidekiq::Job
  sidekiq_options retry: 0

  def perform
    raise "for the dead"
  end
end

class Sleep
  include Sidekiq::Job
  sidekiq_options queue: "slow"

  def perform(key)
    sleep 60 if STORE.incr(key) == 1
  end
end
