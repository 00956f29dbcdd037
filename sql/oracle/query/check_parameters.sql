select P.NAME, P.VALUE, P.ISDEFAULT from V$PARAMETER P where P.NAME in ('aq_tm_processes', 'job_queue_processes', 'cursor_sharing')
