delete from WF_AUDIT where AUDIT_ID in (select AUDIT_ID from WF_AUDIT where OCCURRED_ON_UTC < ? order by OCCURRED_ON_UTC, AUDIT_ID limit ?)
