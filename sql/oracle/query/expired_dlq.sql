select count(*) EXPIRED from (select A.MSG_STATE from AQ$WF_DLQ_QTAB A where A.MSG_STATE = 'EXPIRED' fetch first :ROWS_MAX rows only) M
