-- Waits of one key lie in the order of their instances. Tokens are random: each wait that came or went was of another page.
drop index WF_WAITS_KEY;
create index WF_WAITS_KEY on WF_WAITS (SPEC_NO, KEY_HASH, INSTANCE_NO, WAITING_TOKEN);
