# Sidekiq: processes that poll queues, a schedule and retries popped by script, and its statistics.
require "sidekiq/api"
require_relative "sidekiq_jobs"

def start(*options)
  Process.spawn(RbConfig.ruby, "-S", ENV.fetch("FRAMEWORK_SIDEKIQ"), "-r", File.join(__dir__, "sidekiq_jobs.rb"), "-c", "4", *options,
                %i[out err] => ["sidekiq.log", "a"])
end

first = start("-q", "critical", "-q", "default")
wait_until { Sidekiq::ProcessSet.new.size == 1 }

test "nothing is done twice or lost" do
  Sidekiq::Client.push_bulk("class" => Note, "args" => Array.new(500) { |n| ["bulk", n] })
  wait_until { STORE.llen("bulk") == 500 }
  equal((0...500).to_a, STORE.lrange("bulk", 0, -1).map(&:to_i).sort)
end

test "scheduled jobs" do
  begin_at = Time.now
  Note.perform_in(1, "scheduled", "late")
  Note.perform_at(Time.now + 3600, "scheduled", "never")
  wait_until { STORE.lrange("scheduled", 0, -1) == ["late"] }
  raise "too early" if Time.now - begin_at < 0.9
  set = Sidekiq::ScheduledSet.new
  equal 1, set.size
  set.each(&:delete)
  equal 0, set.size
end

test "retries" do
  SucceedAtThird.perform_async("third")
  retries = Sidekiq::RetrySet.new
  %w[1 2].each do |attempt|
    # Their own time comes too late for a test, so it is brought forward: the schedule takes them by script then.
    wait_until { STORE.get("third") == attempt && retries.size == 1 }
    retries.each { |job| job.reschedule(Time.now) }
  end
  wait_until { STORE.get("third") == "3" && retries.size.zero? }
end

test "the dead" do
  dead = Die.perform_async
  wait_until { Sidekiq::DeadSet.new.find_job(dead) }
  equal "for the dead", Sidekiq::DeadSet.new.find_job(dead)["error_message"]
  Sidekiq::DeadSet.new.clear
end

test "a queue before another" do
  Sidekiq::Queue.new("later").clear
  30.times { |n| Note.set(queue: "later").perform_async("order", "default #{n}") }
  Urgent.set(queue: "sooner").perform_async("order", "critical")
  other = start("-q", "sooner", "-q", "later", "-c", "1")
  wait_until { STORE.llen("order") == 31 }
  equal "critical", STORE.lindex("order", 0)
  Process.kill("TERM", other)
  Process.wait(other)
end

test "a process that ends gives back what it had begun" do
  # One thread, so that no other of its own takes what is given back.
  doomed = start("-q", "slow", "-t", "1", "-c", "1")
  Sleep.perform_async("slow")
  wait_until { STORE.get("slow") == "1" }
  Process.kill("TERM", doomed)
  Process.wait(doomed)
  equal 1, Sidekiq::Queue.new("slow").size
  heir = start("-q", "slow")
  wait_until { STORE.get("slow") == "2" && Sidekiq::Queue.new("slow").size.zero? }
  Process.kill("TERM", heir)
  Process.wait(heir)
end

test "statistics" do
  stats = Sidekiq::Stats.new
  raise "processed #{stats.processed}" if stats.processed < 530
  raise "failed #{stats.failed}" if stats.failed < 3
  equal 0, stats.enqueued
  history = Sidekiq::Stats::History.new(1).processed.values.first
  raise "history #{history}" if history < 530
end

test "a quiet process takes nothing" do
  wait_until { Sidekiq::ProcessSet.new.size == 1 }
  Sidekiq::ProcessSet.new.each(&:quiet!)
  wait_until(30) { Sidekiq::ProcessSet.new.all?(&:stopping?) }
  Note.perform_async("quiet", "x")
  sleep 1
  equal 0, STORE.llen("quiet")
  Sidekiq::Queue.new("default").clear
end

Process.kill("TERM", first)
Process.wait(first)
puts File.read("sidekiq.log").scrub[-2000..] unless $failed.zero?
finish
