select L.DEAD_LETTER_ID from WF_DEAD_LETTERS L
where L.DIED_ON_UTC < CAST(:DIED_BEFORE AS TIMESTAMP(6)) and L.DEAD_LETTER_ID > :AFTER_ID
  and not exists (select 1 from WF_INSTANCES I where I.INSTANCE_ID = L.INSTANCE_ID and I.ENDED_ON_UTC is null)
order by L.DEAD_LETTER_ID
fetch first :ROWS_MAX rows only
