select distinct W.SPEC from WF_WAITS W where W.EVENT_TYPE = :EVENT_TYPE order by W.SPEC fetch first :ROWS_MAX rows only
