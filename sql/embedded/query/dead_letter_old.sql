select L.DEAD_LETTER_ID from WF_DEAD_LETTERS L
where L.DIED_ON_UTC < ? and L.DEAD_LETTER_ID > ?
  and not exists (select 1 from WF_STATES R join WF_INSTANCES I on I.INSTANCE_NO = R.INSTANCE_NO
                  where R.INSTANCE_ID = L.INSTANCE_ID and I.ENDED_ON_UTC is null)
order by L.DEAD_LETTER_ID
limit ?
