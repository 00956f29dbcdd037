select S.NAME from AQ$WF_DLQ_QTAB_S S where S.QUEUE = 'WF_DLQ_Q' order by S.NAME
