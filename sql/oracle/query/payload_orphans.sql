delete from WF_PAYLOADS P where P.CREATED_ON_UTC < CAST(:CREATED_BEFORE AS TIMESTAMP(6))
  and not exists (select 1 from AQ$WF_SIGNAL_QTAB A where A.CORR_ID = P.PAYLOAD_ID)
  and not exists (select 1 from AQ$WF_SCHEDULE_QTAB A where A.CORR_ID = P.PAYLOAD_ID)
  and not exists (select 1 from AQ$WF_COMMAND_QTAB A where A.CORR_ID = P.PAYLOAD_ID)
