select P.SPEC from WF_WAIT_SPECS P
where P.EVENT_TYPE = ? and exists (select 1 from WF_WAITS W where W.SPEC_NO = P.SPEC_NO)
order by P.SPEC
limit ?
