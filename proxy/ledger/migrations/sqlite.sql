CREATE TABLE usher_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT usher_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE usher_calls (
	writer BIGINT NOT NULL, 
	line BIGINT NOT NULL, 
	day INTEGER NOT NULL, 
	request_id TEXT NOT NULL, 
	tenant TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	user TEXT, 
	context TEXT NOT NULL, 
	round INTEGER NOT NULL, 
	provider TEXT NOT NULL, 
	model TEXT NOT NULL, 
	answered_model TEXT, 
	prompt_tokens BIGINT, 
	cached_tokens BIGINT, 
	completion_tokens BIGINT, 
	reasoning_tokens BIGINT, 
	cost_nano_usd BIGINT, 
	cost_source TEXT, 
	started_at DOUBLE NOT NULL, 
	latency_ms DOUBLE, 
	tools_sent INTEGER, 
	tools_deferred INTEGER, 
	tokens_avoided BIGINT, 
	outcome TEXT NOT NULL, 
	cache_write_tokens BIGINT, 
	service_tier TEXT, 
	estimated BOOLEAN NOT NULL, 
	detail TEXT
);
CREATE INDEX usher_calls_request ON usher_calls (request_id);
CREATE INDEX usher_calls_started ON usher_calls (started_at);
CREATE TABLE usher_turns (
	writer BIGINT NOT NULL, 
	line BIGINT NOT NULL, 
	day INTEGER NOT NULL, 
	request_id TEXT NOT NULL, 
	tenant TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	user TEXT, 
	model TEXT NOT NULL, 
	started_at DOUBLE NOT NULL, 
	duration_ms DOUBLE, 
	outcome TEXT NOT NULL, 
	kept INTEGER, 
	"deferred" INTEGER, 
	predicted INTEGER, 
	discovered INTEGER, 
	hits INTEGER, 
	unused INTEGER, 
	missed INTEGER, 
	tokens_avoided BIGINT, 
	detail TEXT
);
CREATE INDEX usher_turns_request ON usher_turns (request_id);
CREATE INDEX usher_turns_started ON usher_turns (started_at);
INSERT INTO usher_version VALUES ('0002');
