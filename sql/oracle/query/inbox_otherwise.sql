select count(*) OTHERS from (
  select B.EVENT_KEY from (select E.EVENT_KEY from WF_INBOX E where E.EVENT_TYPE = :EVENT_TYPE and E.RULE_HASH < :BELOW fetch first 1 rows only) B
  union all
  select A.EVENT_KEY from (select E.EVENT_KEY from WF_INBOX E where E.EVENT_TYPE = :SAME_TYPE and E.RULE_HASH > :ABOVE fetch first 1 rows only) A
) F
