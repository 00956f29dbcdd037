select 1 from WF_DEFINITIONS where NAME = ? and ORDINAL > ? limit 1
