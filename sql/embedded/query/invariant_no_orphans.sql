select 'stream entry ' || S.ENTRY_NO, 'its instance is not there' from WF_STREAM S
where not exists (select 1 from WF_STATES R where R.INSTANCE_NO = S.INSTANCE_NO)
union all
select T.TASK_ID, 'its instance is not there' from WF_TASKS T
where not exists (select 1 from WF_STATES R where R.INSTANCE_NO = T.INSTANCE_NO)
union all
select W.WAITING_TOKEN, 'the instance of the wait is not there' from WF_WAITS W
where not exists (select 1 from WF_STATES R where R.INSTANCE_NO = W.INSTANCE_NO)
union all
select 'search attribute ' || A.NAME, 'its instance is not there' from WF_ATTRIBUTES A
where not exists (select 1 from WF_STATES R where R.INSTANCE_NO = A.INSTANCE_NO)
union all
select 'task event ' || E.EVENT_NO, 'its task is not there' from WF_TASK_EVENTS E
where not exists (select 1 from WF_TASKS T where T.TASK_NO = E.TASK_NO)
union all
select 'piece ' || P.PIECE_ID, 'no snapshot has it' from WF_STATE_PIECES P
where not exists (select 1 from WF_STATES R, json_each(iif(json_valid(R.STATE_CUTS), R.STATE_CUTS, '[]')) C
                  where R.INSTANCE_NO = P.PIECE_ID >> 20 and C.type = 'array' and C.value ->> 2 = P.PIECE_ID & 1048575)
limit ?
