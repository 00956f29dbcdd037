-- Schema ocisim stands before pg_catalog in the search path: what is named here
-- behaves as in Oracle.
BEGIN;
CREATE SCHEMA IF NOT EXISTS ocisim;
CREATE SCHEMA IF NOT EXISTS ocisim_blocks; -- a function for every anonymous block

CREATE DOMAIN ocisim.clob AS text;
CREATE DOMAIN ocisim.blob AS bytea;
CREATE DOMAIN ocisim.raw AS bytea;

CREATE VIEW ocisim.dual AS SELECT 'X'::varchar(1) AS dummy;

-- Assigning a string: a number converts, the others take only NULL, as no
-- format of dates is emulated.
CREATE FUNCTION ocisim.null_only(text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF $1 IS NOT NULL THEN
    RAISE EXCEPTION 'ORA-01861: literal does not match format string';
  END IF;
END $$;
CREATE FUNCTION ocisim.text_timestamptz(text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN PERFORM ocisim.null_only($1); RETURN NULL; END $$;
CREATE FUNCTION ocisim.text_timestamp(text) RETURNS timestamp LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN PERFORM ocisim.null_only($1); RETURN NULL; END $$;
CREATE FUNCTION ocisim.text_bytea(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT decode($1, 'hex') $$;
CREATE CAST (text AS numeric) WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS timestamptz) WITH FUNCTION ocisim.text_timestamptz(text) AS ASSIGNMENT;
CREATE CAST (text AS timestamp) WITH FUNCTION ocisim.text_timestamp(text) AS ASSIGNMENT;
CREATE CAST (text AS bytea) WITH FUNCTION ocisim.text_bytea(text) AS ASSIGNMENT;
